// Package kernel holds the arithmetic of training: matrix products and the
// element-wise and row-wise functions of a transformer, for AVX-512, for AVX2
// with FMA and in portable Go.
//
// # Determinism
//
// AVX2 and AVX-512 give the same bits, for any number of workers:
//
//   - an element of a matrix product is one chain of fused multiply-adds in
//     ascending k, whatever the tile, the block or the vector width;
//   - a row reduction uses 16 lanes and one fixed tree to fold them;
//   - exponentials come from a polynomial of our own, not from a library;
//   - one worker computes an element, and nothing floating-point is atomic.
//
// Portable Go has no fused multiply-add in float32, so it agrees only within a
// tolerance (relative 1e-5 for a function, 1e-4 for a product of K up to 4096);
// in itself it is reproducible on every architecture, since each product is
// rounded before it is added.
//
// The assembly is generated: see the module in folder gen.
package kernel

//go:generate sh -c "cd gen && go run . -set gemm -pkg kernel -out ../gemm_amd64.s -stubs ../gemm_stub_amd64.go"
//go:generate sh -c "cd gen && go run . -set pack -pkg kernel -out ../pack_amd64.s -stubs ../pack_stub_amd64.go"
//go:generate sh -c "cd gen && go run . -set vector -pkg kernel -out ../vector_amd64.s -stubs ../vector_stub_amd64.go"
