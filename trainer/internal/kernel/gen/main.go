// Command gen writes the assembly of package kernel with avo.
//
// It is a module of its own so that nothing of avo reaches the trainer. Each
// kernel is written once for a logical vector of 16 floats and emitted for AVX2
// (two YMM registers) and AVX-512 (one ZMM register): lane for lane the same
// operations in the same order, which is why both give the same bits.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	set := flag.String("set", "", "which kernels to write: gemm, pack or vector")
	flag.Parse()
	switch *set {
	case "gemm":
		gemmKernels()
	case "pack":
		packKernels()
	case "vector":
		for _, i := range []isa{avx2, avx512} {
			vectorKernels(i)
		}
	default:
		panic("gen: -set must be gemm, pack or vector")
	}
	Generate()
}
