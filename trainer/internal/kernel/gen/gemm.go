package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in struct tile of package kernel; TestTileLayout holds them together.
const (
	tileA    = 0  // first element of A(i, k)
	tileRS   = 8  // bytes from A(i, k) to A(i+1, k)
	tileCS   = 16 // bytes from A(i, k) to A(i, k+1)
	tileB    = 24 // packed panel: k rows of one vector pair
	tileK    = 32 // number of k, at least 1
	tileC    = 40 // first element of C(i, j)
	tileLDC  = 48 // bytes from C(i, j) to C(i+1, j)
	tileInit = 56 // where the accumulators start
	tileInLD = 64 // bytes from one row of tileInit to the next; 0 repeats one row
	tileN    = 72 // valid columns
)

// gemmKernels writes, for each number of rows and one or two vectors of columns,
//
//	C(i, j) = init(i, j) + A(i, 0)*B(0, j) + A(i, 1)*B(1, j) + ...
//
// Every element is one chain of fused multiply-adds in ascending k, so neither
// the tile's shape nor the vector's width nor where a block of k ends changes a
// bit of the result.
func gemmKernels() {
	for nv := 1; nv <= 2; nv++ {
		for mr := 1; mr <= 12; mr++ {
			gemmTile512(mr, nv)
		}
	}
	for nv := 1; nv <= 2; nv++ {
		for mr := 1; mr <= 6; mr++ {
			gemmTile256(mr, nv)
		}
	}
	fmaPeak(avx2)
	fmaPeak(avx512)
}

// rowPointers addresses up to 12 rows of A from a pointer for every four.
type rowPointers struct {
	base    []reg.GPVirtual
	rs, rs3 reg.GPVirtual
}

func loadRowPointers(args reg.Register, mr int) rowPointers {
	p := rowPointers{rs: GP64()}
	a := GP64()
	MOVQ(Mem{Base: args, Disp: tileA}, a)
	MOVQ(Mem{Base: args, Disp: tileRS}, p.rs)
	p.base = append(p.base, a)
	if mr > 3 {
		p.rs3 = GP64()
		LEAQ(Mem{Base: p.rs, Index: p.rs, Scale: 2}, p.rs3)
	}
	for len(p.base)*4 < mr {
		next := GP64()
		LEAQ(Mem{Base: p.base[len(p.base)-1], Index: p.rs, Scale: 4}, next)
		p.base = append(p.base, next)
	}
	return p
}

func (p rowPointers) row(r int) Mem {
	base := p.base[r/4]
	switch r % 4 {
	case 1:
		return Mem{Base: base, Index: p.rs, Scale: 1}
	case 2:
		return Mem{Base: base, Index: p.rs, Scale: 2}
	case 3:
		return Mem{Base: base, Index: p.rs3, Scale: 1}
	}
	return Mem{Base: base}
}

func (p rowPointers) advance(cs reg.Register) {
	for _, b := range p.base {
		ADDQ(cs, b)
	}
}

func gemmTile512(mr, nv int) {
	TEXT(fmt.Sprintf("gemmTile512x%dx%d", mr, nv), NOSPLIT, "func(t *byte)")
	Doc(fmt.Sprintf("gemmTile512x%dx%d multiplies a tile of %d rows and up to %d columns.", mr, nv, mr, 16*nv))
	Pragma("noescape")
	args := Load(Param("t"), GP64())

	// Masks of the valid columns.
	n, ones := GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: tileN}, n)
	masks := []reg.OpmaskVirtual{K(), K()}
	MOVQ(I64(-1), ones)
	cnt := reg.RCX
	MOVQ(n, cnt)
	SHLQ(reg.CL, ones)
	NOTQ(ones)
	KMOVW(ones.As32(), masks[0])
	SHRQ(Imm(16), ones)
	KMOVW(ones.As32(), masks[1])

	// Accumulators.
	acc := make([][]reg.VecVirtual, mr)
	src, ld := GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: tileInit}, src)
	MOVQ(Mem{Base: args, Disp: tileInLD}, ld)
	for r := range mr {
		for v := range nv {
			z := ZMM()
			acc[r] = append(acc[r], z)
			VMOVUPS_Z(Mem{Base: src, Disp: 64 * v}, masks[v], z)
		}
		if r < mr-1 {
			ADDQ(ld, src)
		}
	}

	p := loadRowPointers(args, mr)
	cs, b, k := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: tileCS}, cs)
	MOVQ(Mem{Base: args, Disp: tileB}, b)
	MOVQ(Mem{Base: args, Disp: tileK}, k)
	bv := []reg.VecVirtual{ZMM(), ZMM()}
	t := []reg.VecVirtual{ZMM(), ZMM()}
	dst, ldc := outputs(args, mr)
	Label("loop")
	for v := range nv {
		VMOVUPS(Mem{Base: b, Disp: 64 * v}, bv[v])
	}
	for r := range mr {
		VBROADCASTSS(p.row(r), t[r%2])
		for v := range nv {
			VFMADD231PS(bv[v], t[r%2], acc[r][v])
		}
	}
	p.advance(cs)
	ADDQ(Imm(128), b)
	DECQ(k)
	JNZ(LabelRef("loop"))

	for r := range mr {
		for v := range nv {
			VMOVUPS(acc[r][v], masks[v], Mem{Base: dst, Disp: 64 * v})
		}
		if r < mr-1 {
			ADDQ(ldc, dst)
		}
	}
	VZEROUPPER()
	RET()
}

func gemmTile256(mr, nv int) {
	TEXT(fmt.Sprintf("gemmTile256x%dx%d", mr, nv), NOSPLIT, "func(t *byte)")
	Doc(fmt.Sprintf("gemmTile256x%dx%d multiplies a tile of %d rows and up to %d columns.", mr, nv, mr, 8*nv))
	Pragma("noescape")
	args := Load(Param("t"), GP64())

	n := GP64()
	MOVQ(Mem{Base: args, Disp: tileN}, n)
	acc := make([][]reg.VecVirtual, mr)
	for r := range mr {
		for range nv {
			acc[r] = append(acc[r], YMM())
		}
	}
	bv := []reg.VecVirtual{YMM(), YMM()}
	t := []reg.VecVirtual{YMM(), YMM()}

	src, ld := GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: tileInit}, src)
	MOVQ(Mem{Base: args, Disp: tileInLD}, ld)
	CMPQ(n, Imm(uint64(8*nv)))
	JNE(LabelRef("maskedInit"))
	for r := range mr {
		for v := range nv {
			VMOVUPS(Mem{Base: src, Disp: 32 * v}, acc[r][v])
		}
		if r < mr-1 {
			ADDQ(ld, src)
		}
	}
	JMP(LabelRef("start"))
	Label("maskedInit")
	// The masks live in bv, which the loop does not need yet.
	columnMasks256(n, bv[:nv])
	for r := range mr {
		for v := range nv {
			VMASKMOVPS(Mem{Base: src, Disp: 32 * v}, bv[v], acc[r][v])
		}
		if r < mr-1 {
			ADDQ(ld, src)
		}
	}

	Label("start")
	p := loadRowPointers(args, mr)
	cs, b, k := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: tileCS}, cs)
	MOVQ(Mem{Base: args, Disp: tileB}, b)
	MOVQ(Mem{Base: args, Disp: tileK}, k)
	dst, ldc := outputs(args, mr)
	Label("loop")
	for v := range nv {
		VMOVUPS(Mem{Base: b, Disp: 32 * v}, bv[v])
	}
	for r := range mr {
		VBROADCASTSS(p.row(r), t[r%2])
		for v := range nv {
			VFMADD231PS(bv[v], t[r%2], acc[r][v])
		}
	}
	p.advance(cs)
	ADDQ(Imm(64), b)
	DECQ(k)
	JNZ(LabelRef("loop"))

	CMPQ(n, Imm(uint64(8*nv)))
	JNE(LabelRef("maskedStore"))
	for r := range mr {
		for v := range nv {
			VMOVUPS(acc[r][v], Mem{Base: dst, Disp: 32 * v})
		}
		if r < mr-1 {
			ADDQ(ldc, dst)
		}
	}
	VZEROUPPER()
	RET()
	Label("maskedStore")
	columnMasks256(n, bv[:nv])
	for r := range mr {
		for v := range nv {
			VMASKMOVPS(acc[r][v], bv[v], Mem{Base: dst, Disp: 32 * v})
		}
		if r < mr-1 {
			ADDQ(ldc, dst)
		}
	}
	VZEROUPPER()
	RET()
}

// outputs loads where C goes and fetches its lines while the products run: a
// gradient that does not fit into the caches would stall each tile's end.
func outputs(args reg.Register, mr int) (dst, ldc reg.GPVirtual) {
	dst, ldc = GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: tileC}, dst)
	MOVQ(Mem{Base: args, Disp: tileLDC}, ldc)
	p := counter(dst)
	for r := range mr {
		PREFETCHT0(Mem{Base: p})
		PREFETCHT0(Mem{Base: p, Disp: 64})
		if r < mr-1 {
			ADDQ(ldc, p)
		}
	}
	return dst, ldc
}

// columnMasks256 loads masks for n valid columns, 1 to 8 a mask.
func columnMasks256(n reg.Register, masks []reg.VecVirtual) {
	table := maskTable()
	p, off, zero := GP64(), GP64(), GP64()
	LEAQ(table, p)
	XORQ(zero, zero)
	for v, m := range masks {
		// Lane i is valid when 8v+i < n: read at table[16 - (n - 8v)], the
		// difference held to 0..16.
		MOVQ(n, off)
		SUBQ(Imm(uint64(8*v)), off)
		CMOVQLT(zero, off)
		NEGQ(off)
		VMOVDQU(Mem{Base: p, Index: off, Scale: 4, Disp: 64}, m)
	}
}

// fmaPeak keeps all multiply-add units busy with independent chains, which is
// the most that any product could reach.
func fmaPeak(i isa) {
	TEXT("fmaPeak"+i.name, NOSPLIT, "func(rounds int)")
	Doc("fmaPeak" + i.name + " runs 12 independent vector multiply-adds a round.")
	rounds := Load(Param("rounds"), GP64())
	acc := make([]reg.VecVirtual, 12)
	for r := range acc {
		acc[r] = i.reg()
		i.xor(acc[r])
	}
	x := i.reg()
	i.xor(x)
	Label("loop")
	for _, a := range acc {
		VFMADD231PS(x, x, a)
	}
	DECQ(rounds)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
