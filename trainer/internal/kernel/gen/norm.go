package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// layerNorm normalises rows; with a residual it first adds two inputs and keeps
// the sum.
func layerNorm(i isa, residual bool) {
	if residual {
		i.begin("addLayerNorm", "func(dst, sum, x, y, gain, bias, stats *float32, rows, n int, eps, invN float32)",
			"adds rows, keeps the sums and normalises them; stats gets each row's mean and 1/deviation.")
	} else {
		i.begin("layerNorm", "func(dst, x, gain, bias, stats *float32, rows, n int, eps, invN float32)",
			"normalises rows; stats gets each row's mean and 1/deviation.")
	}
	dst, x, gain, bias, stats := param("dst"), param("x"), param("gain"), param("bias"), param("stats")
	rows, n := param("rows"), param("n")
	var sum, y reg.GPVirtual
	in := x
	if residual {
		sum, y = param("sum"), param("y")
		in = sum
	}
	invN := i.scalar("invN")
	Label("row")

	acc := i.zeros()
	if residual {
		i.each(n, func(l lane) {
			a, b := l.load(x), l.load(y)
			VADDPS(b, a, a)
			l.store(a, sum)
			VADDPS(a, acc[l.part], acc[l.part])
		})
	} else {
		i.each(n, func(l lane) {
			VADDPS(l.load(x), acc[l.part], acc[l.part])
		})
	}
	mean := i.broadcast(i.fold(acc, addPS))
	VMULPS(invN, mean, mean)

	for _, a := range acc {
		i.xor(a)
	}
	i.each(n, func(l lane) {
		v := l.load(in)
		VSUBPS(mean, v, v)
		l.clear(v)
		VFMADD231PS(v, v, acc[l.part])
	})
	rstd := i.fold(acc, addPS)
	eps := Load(Param("eps"), XMM())
	VMULSS(invN.AsX(), rstd.AsX(), rstd.AsX())
	VADDSS(eps, rstd.AsX(), rstd.AsX())
	VSQRTSS(rstd.AsX(), rstd.AsX(), rstd.AsX())
	one := XMM()
	VMOVSS(f32(1), one)
	VDIVSS(rstd.AsX(), one, rstd.AsX())
	VMOVSS(mean.AsX(), Mem{Base: stats})
	VMOVSS(rstd.AsX(), Mem{Base: stats, Disp: 4})
	r := i.broadcast(rstd)

	i.each(n, func(l lane) {
		v, g, b := l.load(in), l.load(gain), l.load(bias)
		VSUBPS(mean, v, v)
		VMULPS(r, v, v)
		VFMADD213PS(b, g, v)
		l.store(v, dst)
	})
	ADDQ(Imm(8), stats)
	advanceRows(n, dst, x)
	if residual {
		advanceRows(n, sum, y)
	}
	DECQ(rows)
	JNZ(LabelRef("row"))
	end()
}

// advanceRows moves pointers on by n floats.
func advanceRows(n reg.GPVirtual, ps ...reg.GPVirtual) {
	for _, p := range ps {
		LEAQ(Mem{Base: p, Index: n, Scale: 4}, p)
	}
}

func layerNormBackward(i isa) {
	i.begin("layerNormBackward", "func(dx, dy, x, gain, stats, dgain, dbias *float32, rows, n int, invN float32)",
		"adds to dx the gradient of rows' inputs, and to dgain and dbias those of the parameters.")
	dx, dy, x, gain, stats := param("dx"), param("dy"), param("x"), param("gain"), param("stats")
	dgain, dbias, rows, n := param("dgain"), param("dbias"), param("rows"), param("n")
	invN := Load(Param("invN"), XMM())
	Label("row")
	mean, r := i.reg(), i.reg()
	VBROADCASTSS(Mem{Base: stats}, mean)
	VBROADCASTSS(Mem{Base: stats, Disp: 4}, r)

	// With xhat = (x-mean)*r: sums of dy*gain and of dy*gain*xhat.
	a1, a2 := i.zeros(), i.zeros()
	i.each(n, func(l lane) {
		d, v := l.load(dy), l.load(x)
		VSUBPS(mean, v, v)
		VMULPS(r, v, v)
		t := l.load(dbias)
		VADDPS(d, t, t)
		l.store(t, dbias)
		t = l.load(dgain)
		VFMADD231PS(v, d, t)
		l.store(t, dgain)
		VMULPS(l.load(gain), d, d)
		l.clear(v)
		VADDPS(d, a1[l.part], a1[l.part])
		VFMADD231PS(v, d, a2[l.part])
	})
	s1, s2 := i.fold(a1, addPS), i.fold(a2, addPS)
	VMULSS(invN, s1.AsX(), s1.AsX())
	VMULSS(invN, s2.AsX(), s2.AsX())
	m1, m2 := i.broadcast(s1), i.broadcast(s2)

	i.each(n, func(l lane) {
		d, v, t := l.load(dy), l.load(x), l.load(dx)
		VSUBPS(mean, v, v)
		VMULPS(r, v, v)
		VMULPS(l.load(gain), d, d)
		VSUBPS(m1, d, d)
		VFNMADD231PS(m2, v, d)
		VFMADD231PS(r, d, t)
		l.store(t, dx)
	})
	ADDQ(Imm(8), stats)
	advanceRows(n, dx, dy, x)
	DECQ(rows)
	JNZ(LabelRef("row"))
	end()
}
