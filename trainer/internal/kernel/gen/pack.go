package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packKernels writes the copies that bring operands into the order in which the
// tile kernels read them. They move bits and compute nothing.
func packKernels() {
	for _, i := range []isa{avx2, avx512} {
		packRows(i, 2)
		packStrips(i)
	}
	packTransposed()
	prefetch()
}

// packRows copies rows of up to nv vectors; lanes beyond cols become zero, and
// whole vectors are stored, so dst must have room for them behind its last row.
func packRows(i isa, nv int) {
	TEXT(fmt.Sprintf("packRows%sx%d", i.name, nv), NOSPLIT,
		"func(dst, src *float32, rows, srcStride, dstStride, cols int)")
	Doc(fmt.Sprintf("packRows%sx%d copies rows of cols floats, strides in bytes.", i.name, nv))
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	rows := Load(Param("rows"), GP64())
	ss := Load(Param("srcStride"), GP64())
	ds := Load(Param("dstStride"), GP64())
	cols := Load(Param("cols"), GP64())
	CMPQ(cols, Imm(uint64(nv*i.w)))
	JNE(LabelRef("masked"))
	v := []reg.VecVirtual{i.reg(), i.reg()}
	Label("full")
	for x := range nv {
		VMOVUPS(Mem{Base: src, Disp: 4 * i.w * x}, v[x])
	}
	for x := range nv {
		VMOVUPS(v[x], Mem{Base: dst, Disp: 4 * i.w * x})
	}
	ADDQ(ss, src)
	ADDQ(ds, dst)
	DECQ(rows)
	JNZ(LabelRef("full"))
	VZEROUPPER()
	RET()

	Label("masked")
	lanes := i.masks(cols, nv)
	Label("maskedLoop")
	for x := range nv {
		lanes[x].loadAt(Mem{Base: src, Disp: 4 * i.w * x}, v[x])
	}
	for x := range nv {
		VMOVUPS(v[x], Mem{Base: dst, Disp: 4 * i.w * x})
	}
	ADDQ(ss, src)
	ADDQ(ds, dst)
	DECQ(rows)
	JNZ(LabelRef("maskedLoop"))
	VZEROUPPER()
	RET()
}

// packStrips cuts each row into strips of the tile's height and appends them to
// the strips' own memory, row by row, so that a row is read once and in order.
// Whole vectors are stored: what follows a row in its strip is overwritten by the
// next one, and slack must follow the last.
func packStrips(i isa) {
	TEXT("packStrips"+i.name, NOSPLIT, "func(dst, src *float32, rows, srcStride, strips, stripStride, last int)")
	Doc("packStrips" + i.name + " copies rows into strips, of which the last takes fewer columns; strides in bytes.")
	Pragma("noescape")
	const height512, height256 = 12, 6
	height := height512
	if i.w == 8 {
		height = height256
	}
	dst, src, rows, stride := param("dst"), param("src"), param("rows"), param("srcStride")
	strips, stripStride, last := param("strips"), param("stripStride"), param("last")
	all := GP64()
	MOVQ(U32(uint32(height)), all)
	whole, short := i.masks(all, 1)[0], i.masks(last, 1)[0]
	DECQ(strips)
	v := i.reg()
	Label("row")
	from, to, n := counter(src), counter(dst), counter(strips)
	TESTQ(n, n)
	JEQ(LabelRef("short"))
	Label("strip")
	whole.loadAt(Mem{Base: from}, v)
	VMOVUPS(v, Mem{Base: to})
	ADDQ(Imm(uint64(4*height)), from)
	ADDQ(stripStride, to)
	DECQ(n)
	JNZ(LabelRef("strip"))
	Label("short")
	short.loadAt(Mem{Base: from}, v)
	VMOVUPS(v, Mem{Base: to})
	ADDQ(stride, src)
	ADDQ(Imm(uint64(4*height)), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	end()
}

// packTransposed turns 8 rows of 8*blocks floats into 8*blocks rows of 8.
func packTransposed() {
	TEXT("packTransposed8", NOSPLIT, "func(dst, src *float32, blocks, srcStride, dstStride int)")
	Doc("packTransposed8 transposes 8 rows of 8*blocks floats, strides in bytes.")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := Load(Param("blocks"), GP64())
	ss := Load(Param("srcStride"), GP64())
	ds := Load(Param("dstStride"), GP64())
	in := rowPointers{base: []reg.GPVirtual{src.(reg.GPVirtual), GP64()}, rs: ss.(reg.GPVirtual), rs3: GP64()}
	LEAQ(Mem{Base: ss, Index: ss, Scale: 2}, in.rs3)
	LEAQ(Mem{Base: src, Index: ss, Scale: 4}, in.base[1])
	ds3, dst4 := GP64(), GP64()
	LEAQ(Mem{Base: ds, Index: ds, Scale: 2}, ds3)
	LEAQ(Mem{Base: dst, Index: ds, Scale: 4}, dst4)
	out := rowPointers{base: []reg.GPVirtual{dst.(reg.GPVirtual), dst4}, rs: ds.(reg.GPVirtual), rs3: ds3}
	step := GP64()
	LEAQ(Mem{Base: ds, Index: ds, Scale: 1}, step)
	SHLQ(Imm(2), step)

	Label("loop")
	for half := range 2 {
		t := make([]reg.VecVirtual, 4)
		for r := range 4 {
			t[r] = YMM()
			lo, hi := in.row(r), in.row(r+4)
			lo.Disp, hi.Disp = 16*half, 16*half
			VMOVUPS(lo, t[r].AsX())
			VINSERTF128(Imm(1), hi, t[r], t[r])
		}
		a := []reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
		VUNPCKLPS(t[1], t[0], a[0])
		VUNPCKHPS(t[1], t[0], a[1])
		VUNPCKLPS(t[3], t[2], a[2])
		VUNPCKHPS(t[3], t[2], a[3])
		o := YMM()
		for r := range 4 {
			imm := uint64(0x44)
			if r%2 == 1 {
				imm = 0xee
			}
			VSHUFPS(Imm(imm), a[2+r/2], a[r/2], o)
			VMOVUPS(o, out.row(4*half+r))
		}
	}
	in.advance(eightFloats())
	out.advance(step)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func eightFloats() reg.Register {
	r := GP64()
	MOVQ(U32(32), r)
	return r
}

// prefetch asks for lines of 64 bytes of several rows.
func prefetch() {
	TEXT("prefetchLines", NOSPLIT, "func(p *float32, rows, stride, lines int)")
	Doc("prefetchLines asks for the first lines of each row, stride in bytes.")
	Pragma("noescape")
	p, rows, stride, lines := param("p"), param("rows"), param("stride"), param("lines")
	Label("row")
	at, n := counter(p), counter(lines)
	Label("line")
	PREFETCHT1(Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(n)
	JNZ(LabelRef("line"))
	ADDQ(stride, p)
	DECQ(rows)
	JNZ(LabelRef("row"))
	RET()
}
