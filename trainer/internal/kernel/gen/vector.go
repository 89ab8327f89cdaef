package main

import (
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
