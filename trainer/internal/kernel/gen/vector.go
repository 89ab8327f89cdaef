package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectorKernels writes the element-wise and row kernels.
func vectorKernels(i isa) {
	add(i)
	layerNorm(i, false)
	layerNorm(i, true)
	layerNormBackward(i)
	geluTanh(i)
	geluTanhBackward(i)
	geluErf(i)
	geluErfBackward(i)
	softmax(i)
	softmaxAgain(i)
	softmaxBackward(i)
	adamW(i)
	sumSquares(i)
	dropout(i)
	columnSums(i)
	dot(i)
	axpy(i)
}

func (i isa) begin(name, signature, doc string) {
	TEXT(name+i.name, NOSPLIT, signature)
	Doc(name + i.name + " " + doc)
	Pragma("noescape")
}

func end() {
	VZEROUPPER()
	RET()
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

func (i isa) scalar(name string) reg.VecVirtual { return i.broadcast(Load(Param(name), XMM())) }

func add(i isa) {
	i.begin("add", "func(dst, a, b *float32, n int)", "adds two vectors.")
	dst, a, b, n := param("dst"), param("a"), param("b"), param("n")
	i.each(n, func(l lane) {
		x, y := l.load(a), l.load(b)
		VADDPS(y, x, x)
		l.store(x, dst)
	})
	end()
}

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

// Offsets in the constants that AdamW of package kernel.
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
		VMOVDQU32or(i, iota16.Offset(4*i.w*p), pos[p])
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

// VMOVDQU32or loads integers.
func VMOVDQU32or(i isa, m Mem, v reg.VecVirtual) {
	if i.w == 16 {
		VMOVDQU32(m, v)
	} else {
		VMOVDQU(m, v)
	}
}

func columnSums(i isa) {
	i.begin("columnSums", "func(dst, src *float32, rows, cols, stride int)",
		"adds to dst the sums over rows, in ascending order of rows; stride in bytes.")
	dst, src, rows, cols, stride := param("dst"), param("src"), param("rows"), param("cols"), param("stride")
	i.each(cols, func(l lane) {
		acc := l.load(dst)
		p, r := counter(src), counter(rows)
		name := "rows" + string(rune('a'+l.part))
		if l.masked {
			name += "m"
		}
		Label(name)
		VADDPS(l.load(p), acc, acc)
		ADDQ(stride, p)
		DECQ(r)
		JNZ(LabelRef(name))
		l.store(acc, dst)
	})
	end()
}

func dot(i isa) {
	i.begin("dot", "func(a, b *float32, n int) float32", "returns the inner product.")
	a, b, n := param("a"), param("b"), param("n")
	acc := i.zeros()
	i.each(n, func(l lane) {
		v := l.load(a)
		VFMADD231PS(l.load(b), v, acc[l.part])
	})
	sum := i.fold(acc, addPS)
	Store(sum.AsX(), ReturnIndex(0))
	end()
}

func axpy(i isa) {
	i.begin("axpy", "func(dst, x *float32, n int, a float32)", "adds a*x to dst.")
	dst, x, n := param("dst"), param("x"), param("n")
	a := i.scalar("a")
	i.each(n, func(l lane) {
		t := l.load(dst)
		VFMADD231PS(l.load(x), a, t)
		l.store(t, dst)
	})
	end()
}
