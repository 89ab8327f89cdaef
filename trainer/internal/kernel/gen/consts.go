package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

var (
	constants = map[uint32]Mem{}
	masks     *Mem
)

// f32 returns 16 copies of a float in read-only memory.
func f32(x float64) Mem { return u32(math.Float32bits(float32(x))) }

// u32 returns 16 copies of a word in read-only memory. avo writes a float32
// operand as an integer, hence bit patterns.
func u32(bits uint32) Mem {
	if m, ok := constants[bits]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("c%08x", bits), RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(bits))
	}
	constants[bits] = m
	return m
}

// maskTable returns 16 words of ones followed by 16 of zeros: read at word
// 16-n it gives masks of the first n lanes.
func maskTable() Mem {
	if masks == nil {
		m := GLOBL("maskTable", RODATA|NOPTR)
		for i := range 32 {
			w := U32(0)
			if i < 16 {
				w = U32(0xffffffff)
			}
			DATA(4*i, w)
		}
		masks = &m
	}
	return *masks
}
