package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dropout hashes key and position with the constants of Wellons' lowbias32
// (public domain) and keeps an element when the top 24 bits reach the threshold.
func dropout(i isa) {
	i.begin("dropout", "func(dst, src *float32, n int, key0, key1, threshold uint32, scale float32)",
		"zeroes elements at random and scales the others.")
	dst, src, n := param("dst"), param("src"), param("n")
	word := func(name string) reg.VecVirtual {
		x, g := XMM(), Load(Param(name), GP32())
		VMOVD(g, x)
		v := i.reg()
		VPBROADCASTD(x, v)
		return v
	}
	k0, k1, threshold := word("key0"), word("key1"), word("threshold")
	scale := i.scalar("scale")
	iota16 := GLOBL("lanes"+i.name, RODATA|NOPTR)
	for j := range 16 {
		DATA(4*j, U32(uint32(j)))
	}
	pos := make([]reg.VecVirtual, i.parts())
	for p := range pos {
		pos[p] = i.reg()
		loadIntegers(i, iota16.Offset(4*i.w*p), pos[p])
	}
	i.each(n, func(l lane) {
		h, t := i.reg(), i.reg()
		i.pxor(k0, pos[l.part], h)
		mix := func(shift uint64, mul uint32) {
			VPSRLD(Imm(shift), h, t)
			i.pxor(t, h, h)
			if mul != 0 {
				VPMULLD(u32(mul), h, h)
			}
		}
		mix(16, 0x7feb352d)
		VPADDD(k1, h, h)
		mix(15, 0x846ca68b)
		mix(16, 0x7feb352d)
		mix(15, 0)
		VPSRLD(Imm(8), h, h)
		VPADDD(u32(16), pos[l.part], pos[l.part])
		v := l.load(src)
		VMULPS(scale, v, v)
		if i.w == 16 {
			keep := K()
			VPCMPD(Imm(5), threshold, h, keep) // h >= threshold
			VMOVAPS_Z(v, keep, v)
		} else {
			VPCMPGTD(h, threshold, t) // threshold > h
			VANDNPS(v, t, v)
		}
		l.store(v, dst)
	})
	end()
}

// loadIntegers loads without regard to what the bits mean.
func loadIntegers(i isa, m Mem, v reg.VecVirtual) {
	if i.w == 16 {
		VMOVDQU32(m, v)
	} else {
		VMOVDQU(m, v)
	}
}
