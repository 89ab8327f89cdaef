package gpt

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages behind b. The kernel may decline, which costs
// speed alone, so its answer is not looked at.
func adviseHuge(b []byte) {
	const page = 2 << 20
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int((page - begin%page) % page)
	if size := (len(b) - skip) / page * page; size > 0 {
		_ = unix.Madvise(b[skip:skip+size], unix.MADV_HUGEPAGE)
	}
}
