package kernel

import "unsafe"

// Alloc returns n zero floats whose first lies on a cache line, so that a
// vector of a packed panel never straddles two.
func Alloc(n int) []float32 {
	const line = 64
	x := make([]float32, n+line/4)
	skip := 0
	if r := int(uintptr(unsafe.Pointer(unsafe.SliceData(x))) % line); r != 0 {
		skip = (line - r) / 4
	}
	return x[skip : skip+n : skip+n]
}
