package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set: how many floats one register holds.
type isa struct {
	name string
	w    int
}

var (
	avx2   = isa{name: "256", w: 8}
	avx512 = isa{name: "512", w: 16}
)

func (i isa) reg() reg.VecVirtual {
	if i.w == 16 {
		return ZMM()
	}
	return YMM()
}

// parts is the number of registers that make one logical vector of 16 floats.
func (i isa) parts() int { return 16 / i.w }

// lane is one register's part of a logical vector: part p of the 16 floats, all
// of them or those that its mask names.
type lane struct {
	i      isa
	part   int
	masked bool
	off    reg.Register      // floats before this vector; nil for none
	k      reg.OpmaskVirtual // AVX-512
	y      reg.VecVirtual    // AVX2
}

func (l lane) at(p reg.Register) Mem {
	m := Mem{Base: p, Disp: 4 * l.i.w * l.part}
	if l.off != nil {
		m.Index, m.Scale = l.off, 4
	}
	return m
}

// load reads this part of the vector at p; lanes outside the mask become zero.
func (l lane) load(p reg.Register) reg.VecVirtual {
	v := l.i.reg()
	l.loadAt(l.at(p), v)
	return v
}

func (l lane) loadAt(m Mem, v reg.VecVirtual) {
	switch {
	case !l.masked:
		VMOVUPS(m, v)
	case l.i.w == 16:
		VMOVUPS_Z(m, l.k, v)
	default:
		VMASKMOVPS(m, l.y, v)
	}
}

func (l lane) store(v reg.VecVirtual, p reg.Register) {
	switch {
	case !l.masked:
		VMOVUPS(v, l.at(p))
	case l.i.w == 16:
		VMOVUPS(v, l.k, l.at(p))
	default:
		VMASKMOVPS(v, l.y, l.at(p))
	}
}

// clear makes lanes outside the mask zero, before v enters a sum.
func (l lane) clear(v reg.VecVirtual) {
	switch {
	case !l.masked:
	case l.i.w == 16:
		VMOVAPS_Z(v, l.k, v)
	default:
		VANDPS(l.y, v, v)
	}
}

// masks returns lanes for count registers of which only the first n floats
// are valid, 0 <= n <= count*w.
func (i isa) masks(n reg.Register, count int) []lane {
	lanes := make([]lane, count)
	if i.w == 8 {
		y := make([]reg.VecVirtual, count)
		for p := range y {
			y[p] = YMM()
		}
		columnMasks256(n, y)
		for p := range lanes {
			lanes[p] = lane{i: i, part: p, masked: true, y: y[p]}
		}
		return lanes
	}
	bits := GP64()
	MOVQ(I64(-1), bits)
	MOVQ(n, reg.RCX)
	SHLQ(reg.CL, bits)
	NOTQ(bits)
	for p := range lanes {
		k := K()
		KMOVW(bits.As32(), k)
		lanes[p] = lane{i: i, part: p, masked: true, k: k}
		if p < count-1 {
			SHRQ(Imm(16), bits)
		}
	}
	return lanes
}

var loops int

// each runs body over a row of n floats, 16 at a time in parts, and a last time
// masked.
func (i isa) each(n reg.GPVirtual, body func(l lane)) {
	loops++
	name := func(s string) string { return fmt.Sprintf("%s%d", s, loops) }
	full, tail, done := name("full"), name("tail"), name("done")
	off, end := GP64(), GP64()
	XORQ(off, off)
	MOVQ(n, end)
	ANDQ(I8(-16), end)
	JMP(LabelRef(tail))
	Label(full)
	for p := range i.parts() {
		body(lane{i: i, part: p, off: off})
	}
	ADDQ(Imm(16), off)
	Label(tail)
	CMPQ(off, end)
	JLT(LabelRef(full))
	MOVQ(n, end)
	SUBQ(off, end)
	JEQ(LabelRef(done))
	for _, l := range i.masks(end, i.parts()) {
		l.off = off
		body(l)
	}
	Label(done)
}

// broadcast returns x in every lane.
func (i isa) broadcast(x reg.Register) reg.VecVirtual {
	v := i.reg()
	VBROADCASTSS(x, v)
	return v
}

// zeros returns one zero register for each part.
func (i isa) zeros() []reg.VecVirtual {
	acc := make([]reg.VecVirtual, i.parts())
	for p := range acc {
		acc[p] = i.reg()
		i.xor(acc[p])
	}
	return acc
}

func (i isa) xor(v reg.VecVirtual) {
	if i.w == 16 {
		VPXORD(v, v, v)
	} else {
		VPXOR(v, v, v)
	}
}

// fold combines the 16 lanes of acc in one fixed tree, 16 to 8 to 4 to 2 to 1,
// and returns the result in lane 0.
func (i isa) fold(acc []reg.VecVirtual, op func(a, b, dst Op)) reg.VecVirtual {
	y := YMM()
	if i.w == 16 {
		hi := YMM()
		VEXTRACTF64X4(Imm(1), acc[0], hi)
		op(hi, acc[0].AsY(), y)
	} else {
		op(acc[1], acc[0], y)
	}
	x, t := XMM(), XMM()
	VEXTRACTF128(Imm(1), y, t)
	op(t, y.AsX(), x)
	VPSHUFD(Imm(0xee), x, t)
	op(t, x, x)
	VPSHUFD(Imm(0x55), x, t)
	op(t, x, x)
	return x
}

func addPS(a, b, dst Op) { VADDPS(a, b, dst) }
func maxPS(a, b, dst Op) { VMAXPS(a, b, dst) }

// counter copies a length or a pointer that a loop changes.
func counter(n reg.Register) reg.GPVirtual {
	c := GP64()
	MOVQ(n, c)
	return c
}
