package kernel

import (
	"math"
	"unsafe"
)

// portableSet returns the kernels in Go. Every product that is added to
// something, be it statements later, is converted to float32 first, which forbids
// fusing: the bits are then the same on every architecture and with every GOAMD64.
func portableSet() *Set {
	return &Set{
		isa: Portable, rows: 4, width: 4, half: 0,
		tiles:     [2][]tileFunc{nil, {nil, portableTile(1), portableTile(2), portableTile(3), portableTile4}},
		packPanel: portablePanel, packStrips: portableStrips,
		add: portableAdd, layerNorm: portableLayerNorm, addLayerNorm: portableAddLayerNorm,
		layerNormBackward: portableLayerNormBackward,
		geluTanh:          portableGELU(geluTanhScalar), geluTanhBackward: portableGELUBackward(geluTanhScalar),
		geluErf: portableGELU(geluErfScalar), geluErfBackward: portableGELUBackward(geluErfScalar),
		softmax: portableSoftmax, softmaxAgain: portableSoftmaxAgain, softmaxBackward: portableSoftmaxBackward,
		adamW: portableAdamW, sumSquares: portableSumSquares, dropout: portableDropout,
		columnSums: portableColumnSums, dot: portableDot, axpy: portableAXPY,
	}
}

func view(p *float32, n int) []float32 { return unsafe.Slice(p, n) }

// rowAt returns n floats, offset bytes behind p.
func rowAt(p *float32, offset, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(p), offset)), n)
}

func portablePanel(dst, src *float32, rows, srcStride, dstStride, cols int) {
	for r := range rows {
		d := rowAt(dst, r*dstStride, 4)
		clear(d[copy(d, rowAt(src, r*srcStride, cols)):])
	}
}

func portableStrips(dst, src *float32, rows, srcStride, strips, stripStride, last int) {
	for r := range rows {
		for s := range strips {
			cols := 4
			if s == strips-1 {
				cols = last
			}
			copy(rowAt(dst, s*stripStride+16*r, 4), rowAt(src, r*srcStride+16*s, cols))
		}
	}
}

func portableAdd(dst, a, b *float32, n int) {
	d, x, y := view(dst, n), view(a, n), view(b, n)
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func portableAXPY(dst, x *float32, n int, a float32) {
	d, v := view(dst, n), view(x, n)
	for i := range d {
		d[i] += float32(a * v[i])
	}
}

func portableDot(a, b *float32, n int) float32 {
	x, y := view(a, n), view(b, n)
	var sum float32
	for i := range x {
		sum += float32(x[i] * y[i])
	}
	return sum
}

func portableSumSquares(x *float32, n int) float32 { return portableDot(x, x, n) }

func portableColumnSums(dst, src *float32, rows, cols, stride int) {
	d := view(dst, cols)
	for r := range rows {
		for i, v := range rowAt(src, r*stride, cols) {
			d[i] += v
		}
	}
}

func portableLayerNorm(dst, x, gain, bias, stats *float32, rows, n int, eps, invN float32) {
	g, b, st := view(gain, n), view(bias, n), view(stats, 2*rows)
	for r := range rows {
		in, out := rowAt(x, 4*r*n, n), rowAt(dst, 4*r*n, n)
		var sum, sq float32
		for _, v := range in {
			sum += v
		}
		mean := float32(sum * invN)
		for _, v := range in {
			sq += float32((v - mean) * (v - mean))
		}
		rstd := 1 / float32(math.Sqrt(float64(float32(sq*invN)+eps)))
		st[2*r], st[2*r+1] = mean, rstd
		for i, v := range in {
			out[i] = float32(float32((v-mean)*rstd)*g[i]) + b[i]
		}
	}
}

func portableAddLayerNorm(dst, sum, x, y, gain, bias, stats *float32, rows, n int, eps, invN float32) {
	portableAdd(sum, x, y, rows*n)
	portableLayerNorm(dst, sum, gain, bias, stats, rows, n, eps, invN)
}

func portableLayerNormBackward(dx, dy, x, gain, stats, dgain, dbias *float32, rows, n int, invN float32) {
	g, dg, db, st := view(gain, n), view(dgain, n), view(dbias, n), view(stats, 2*rows)
	for r := range rows {
		in, dout, din := rowAt(x, 4*r*n, n), rowAt(dy, 4*r*n, n), rowAt(dx, 4*r*n, n)
		mean, rstd := st[2*r], st[2*r+1]
		var s1, s2 float32
		for i, v := range in {
			hat := (v - mean) * rstd
			db[i] += dout[i]
			dg[i] += float32(dout[i] * hat)
			d := float32(dout[i] * g[i])
			s1 += d
			s2 += float32(d * hat)
		}
		m1, m2 := float32(s1*invN), float32(s2*invN)
		for i, v := range in {
			hat := (v - mean) * rstd
			d := float32(dout[i]*g[i]) - m1 - float32(m2*hat)
			din[i] += float32(rstd * d)
		}
	}
}

func portableSoftmax(dst, src *float32, n int, scale, post float32) (peak, sum float32) {
	d, x := view(dst, n), view(src, n)
	peak = float32(math.Inf(-1))
	for _, v := range x {
		// max keeps NaN, so that a diverged run is seen as one.
		peak = max(peak, scale*v)
	}
	for i, v := range x {
		d[i] = exp32(float32(v*scale) - peak)
		sum += d[i]
	}
	inv := post / sum
	for i := range d {
		d[i] *= inv
	}
	return peak, sum
}

func portableSoftmaxAgain(dst, src *float32, n int, scale, peak, inv float32) {
	d, x := view(dst, n), view(src, n)
	for i, v := range x {
		d[i] = exp32(float32(v*scale)-peak) * inv
	}
}

func portableSoftmaxBackward(d, p *float32, n int, scale float32) {
	grad, prob := view(d, n), view(p, n)
	sum := portableDot(d, p, n)
	for i := range grad {
		grad[i] = (grad[i] - sum) * scale * prob[i]
	}
}

func portableAdamW(p, g, m, v *float32, n int, a *float32) {
	param, grad, m1, m2, c := view(p, n), view(g, n), view(m, n), view(v, n), view(a, 9)
	for i, x := range grad {
		x *= c[4]
		m1[i] = float32(c[0]*m1[i]) + float32(c[1]*x)
		m2[i] = float32(c[2]*m2[i]) + float32(c[3]*float32(x*x))
		denominator := float32(float32(math.Sqrt(float64(m2[i])))*c[7]) + c[8]
		param[i] = float32(param[i]*c[5]) - float32(c[6]*m1[i])/denominator
	}
}

func portableDropout(dst, src *float32, n int, key0, key1, threshold uint32, scale float32) {
	d, x := view(dst, n), view(src, n)
	for i, v := range x {
		h := uint32(i) ^ key0
		h = (h ^ h>>16) * 0x7feb352d
		h += key1
		h = (h ^ h>>15) * 0x846ca68b
		h = (h ^ h>>16) * 0x7feb352d
		h ^= h >> 15
		if h>>8 >= threshold {
			d[i] = v * scale
		} else {
			d[i] = 0
		}
	}
}
