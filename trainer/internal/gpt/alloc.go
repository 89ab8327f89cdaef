package gpt

import (
	"unsafe"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

// hugeFrom is the size in bytes from which huge pages pay: walking the rows of
// a large matrix on small pages misses the address cache at every row.
const hugeFrom = 4 << 20

// Alloc returns n zero floats that begin on a cache line.
func Alloc(n int) []float32 {
	x := kernel.Alloc(n)
	if 4*n >= hugeFrom {
		adviseHuge(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*n))
	}
	return x
}
