package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in the constants that AdamW of package kernel lays out.
const (
	adamBeta1 = 4 * iota
	adamOneMinusBeta1
	adamBeta2
	adamOneMinusBeta2
	adamGradScale
	adamDecay
	adamStep
	adamInvSqrt
	adamEps
	adamFields = iota
)

func adamW(i isa) {
	i.begin("adamW", "func(p, grad, m, v *float32, n int, a *float32)", "updates parameters and moments.")
	p, g, m, v, n, args := param("p"), param("grad"), param("m"), param("v"), param("n"), param("a")
	c := make([]reg.VecVirtual, adamFields)
	for f := range c {
		c[f] = i.reg()
		VBROADCASTSS(Mem{Base: args, Disp: 4 * f}, c[f])
	}
	i.each(n, func(l lane) {
		grad, t := l.load(g), l.load(m)
		VMULPS(c[adamGradScale/4], grad, grad)
		VMULPS(c[adamBeta1/4], t, t)
		VFMADD231PS(c[adamOneMinusBeta1/4], grad, t)
		l.store(t, m)
		VMULPS(grad, grad, grad)
		VMULPS(c[adamOneMinusBeta2/4], grad, grad)
		u := l.load(v)
		VFMADD213PS(grad, c[adamBeta2/4], u)
		l.store(u, v)
		VSQRTPS(u, u)
		VFMADD213PS(c[adamEps/4], c[adamInvSqrt/4], u)
		VMULPS(c[adamStep/4], t, t)
		VDIVPS(u, t, t)
		w := l.load(p)
		VFMSUB213PS(t, c[adamDecay/4], w)
		l.store(w, p)
	})
	end()
}

func sumSquares(i isa) {
	i.begin("sumSquares", "func(x *float32, n int) float32", "returns the sum of squares.")
	x, n := param("x"), param("n")
	acc := i.zeros()
	i.each(n, func(l lane) {
		v := l.load(x)
		VFMADD231PS(v, v, acc[l.part])
	})
	sum := i.fold(acc, addPS)
	Store(sum.AsX(), ReturnIndex(0))
	end()
}
