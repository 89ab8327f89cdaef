package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
)

func geluTanh(i isa) {
	i.begin("geluTanh", "func(dst, x *float32, n int)", "is GELU in the tanh form.")
	dst, src, n := param("dst"), param("x"), param("n")
	i.each(n, func(l lane) {
		x := l.load(src)
		e, _ := i.geluTanhExp(x, false)
		VADDPS(f32(1), e, e)
		VDIVPS(e, x, x)
		l.store(x, dst)
	})
	end()
}

func geluTanhBackward(i isa) {
	i.begin("geluTanhBackward", "func(x, d *float32, n int)",
		"replaces x by its GELU and d, the gradient of that, by the gradient of x.")
	src, grad, n := param("x"), param("d"), param("n")
	i.each(n, func(l lane) {
		x := l.load(src)
		e, du := i.geluTanhExp(x, true)
		s, t := i.reg(), i.reg()
		VADDPS(f32(1), e, t)
		VMOVUPS(f32(1), s)
		VDIVPS(t, s, s)
		// derivative s + x*s*(e*s)*d(2u)/dx; the value is x*s.
		VMULPS(s, e, e)
		VMULPS(du, e, e)
		VMULPS(s, x, x)
		VFMADD213PS(s, x, e)
		VMULPS(l.load(grad), e, e)
		l.store(x, src)
		l.store(e, grad)
	})
	end()
}

func geluErf(i isa) {
	i.begin("geluErf", "func(dst, x *float32, n int)", "is GELU in the erf form.")
	dst, src, n := param("dst"), param("x"), param("n")
	i.each(n, func(l lane) {
		x := l.load(src)
		phi, _ := i.normalCDF(x)
		VMULPS(phi, x, x)
		l.store(x, dst)
	})
	end()
}

func geluErfBackward(i isa) {
	i.begin("geluErfBackward", "func(x, d *float32, n int)",
		"replaces x by its GELU and d, the gradient of that, by the gradient of x.")
	src, grad, n := param("x"), param("d"), param("n")
	i.each(n, func(l lane) {
		x := l.load(src)
		phi, e := i.normalCDF(x)
		// derivative phi + x*e^(-x^2/2)/sqrt(2*pi)
		VMULPS(f32(1/math.Sqrt(2*math.Pi)), e, e)
		VFMADD213PS(phi, x, e)
		VMULPS(l.load(grad), e, e)
		VMULPS(phi, x, x)
		l.store(x, src)
		l.store(e, grad)
	})
	end()
}
