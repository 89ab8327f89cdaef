package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func softmax(i isa) {
	i.begin("softmax", "func(dst, src *float32, n int, scale, post float32) (peak, sum float32)",
		"writes post*softmax(scale*src) and returns the largest scaled input and the sum of exponentials.")
	dst, src, n := param("dst"), param("src"), param("n")
	scale := i.scalar("scale")

	acc := make([]reg.VecVirtual, i.parts())
	for p := range acc {
		acc[p] = i.reg()
		VMOVUPS(f32(math.Inf(-1)), acc[p])
	}
	i.each(n, func(l lane) {
		v := l.load(src)
		VMULPS(scale, v, v)
		l.fill(v, f32(math.Inf(-1)))
		VMAXPS(v, acc[l.part], acc[l.part])
	})
	peak := i.broadcast(i.fold(acc, maxPS))

	for _, a := range acc {
		i.xor(a)
	}
	i.each(n, func(l lane) {
		v := l.load(src)
		VFMSUB213PS(peak, scale, v)
		i.exp(v)
		l.clear(v)
		VADDPS(v, acc[l.part], acc[l.part])
		l.store(v, dst)
	})
	sum := i.fold(acc, addPS)
	Store(peak.AsX(), ReturnIndex(0))
	Store(sum.AsX(), ReturnIndex(1))
	post := Load(Param("post"), XMM())
	inv := XMM()
	VDIVSS(sum.AsX(), post, inv)
	scaleRow(i, dst, n, i.broadcast(inv))
	end()
}

// fill puts m into lanes outside the mask.
func (l lane) fill(v reg.VecVirtual, m Mem) {
	switch {
	case !l.masked:
	case l.i.w == 16:
		t := ZMM()
		VMOVUPS(m, t)
		VMOVAPS(v, l.k, t)
		VMOVAPS(t, v)
	default:
		t := YMM()
		VMOVUPS(m, t)
		VBLENDVPS(l.y, v, t, v)
	}
}

func scaleRow(i isa, dst, n reg.GPVirtual, by reg.VecVirtual) {
	i.each(n, func(l lane) {
		v := l.load(dst)
		VMULPS(by, v, v)
		l.store(v, dst)
	})
}

func softmaxAgain(i isa) {
	i.begin("softmaxAgain", "func(dst, src *float32, n int, scale, peak, inv float32)",
		"repeats a softmax bit for bit from its largest scaled input and post/sum.")
	dst, src, n := param("dst"), param("src"), param("n")
	scale, peak, inv := i.scalar("scale"), i.scalar("peak"), i.scalar("inv")
	i.each(n, func(l lane) {
		v := l.load(src)
		VFMSUB213PS(peak, scale, v)
		i.exp(v)
		VMULPS(inv, v, v)
		l.store(v, dst)
	})
	end()
}

func softmaxBackward(i isa) {
	i.begin("softmaxBackward", "func(d, p *float32, n int, scale float32)",
		"replaces d, the gradient of the probabilities p, by that of the unscaled inputs.")
	d, p, n := param("d"), param("p"), param("n")
	scale := i.scalar("scale")
	acc := i.zeros()
	i.each(n, func(l lane) {
		v := l.load(d)
		VFMADD231PS(l.load(p), v, acc[l.part])
	})
	sum := i.broadcast(i.fold(acc, addPS))
	i.each(n, func(l lane) {
		v := l.load(d)
		VSUBPS(sum, v, v)
		VMULPS(scale, v, v)
		VMULPS(l.load(p), v, v)
		l.store(v, d)
	})
	end()
}
