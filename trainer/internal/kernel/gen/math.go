package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exp replaces x by e^x: range reduction by multiples of ln 2 and the polynomial
// of Cephes' expf (Moshier), relative error below 2e-7. Arguments are held to
// [-87, 88]; NaN stays NaN, so that a diverged run is seen as one.
func (i isa) exp(x reg.VecVirtual) {
	n, p := i.reg(), i.reg()
	// MAXPS and MINPS return the second source when one is NaN: x must be that.
	VMOVUPS(f32(-87), p)
	VMAXPS(x, p, x)
	VMOVUPS(f32(88), p)
	VMINPS(x, p, x)
	VMULPS(f32(math.Log2E), x, n)
	if i.w == 16 {
		VRNDSCALEPS(Imm(8), n, n)
	} else {
		VROUNDPS(Imm(8), n, n)
	}
	VFNMADD231PS(f32(0.693359375), n, x)
	VFNMADD231PS(f32(-2.12194440e-4), n, x)
	VMOVUPS(f32(1.9875691500e-4), p)
	for _, c := range []float64{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		VFMADD213PS(f32(c), x, p)
	}
	// e^r = (p*r + 1)*r + 1
	VFMADD213PS(f32(1), x, p)
	VFMADD213PS(f32(1), p, x)
	VCVTPS2DQ(n, n)
	VPSLLD(Imm(23), n, n)
	VPADDD(n, x, x)
}

// Constants of the tanh form of GELU (Hendrycks and Gimpel, arXiv:1606.08415):
// 0.5*x*(1 + tanh(u)) = x / (1 + e^(-2u)), u = k0*(x + k1*x^3).
const (
	geluK1 = 0.044715
)

var geluK0 = math.Sqrt(2 / math.Pi)

// geluTanhExp returns e^(-2u) of x and, when asked, d(2u)/dx.
func (i isa) geluTanhExp(x reg.VecVirtual, derivative bool) (e, du reg.VecVirtual) {
	a, b := 2*geluK0, 2*geluK0*geluK1
	sq := i.reg()
	e = i.reg()
	VMULPS(x, x, sq)
	VMOVUPS(f32(-b), e)
	VFMADD213PS(f32(-a), sq, e)
	VMULPS(x, e, e)
	i.exp(e)
	if derivative {
		du = i.reg()
		VMOVUPS(f32(3*b), du)
		VFMADD213PS(f32(a), sq, du)
	}
	return e, du
}

// erf's rational approximation 7.1.26 of Abramowitz and Stegun, error below 1.5e-7.
var erfA = []float64{1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592}

const erfP = 0.3275911

// normalCDF returns the standard normal distribution at x and e^(-x^2/2).
func (i isa) normalCDF(x reg.VecVirtual) (phi, e reg.VecVirtual) {
	e, phi = i.reg(), i.reg()
	t := i.reg()
	VMULPS(x, x, e)
	VMULPS(f32(-0.5), e, e)
	i.exp(e)
	// t = 1 / (1 + p*|x|/sqrt 2)
	i.and(u32(0x7fffffff), x, t)
	VMULPS(f32(erfP/math.Sqrt2), t, t)
	VADDPS(f32(1), t, t)
	VMOVUPS(f32(1), phi)
	VDIVPS(t, phi, t)
	VMOVUPS(f32(erfA[0]), phi)
	for _, c := range erfA[1:] {
		VFMADD213PS(f32(c), t, phi)
	}
	VMULPS(t, phi, phi)
	VMULPS(e, phi, phi)
	// phi = 1 - erf(|x|/sqrt 2); the distribution is 0.5*(1 + sign(x)*(1 - phi)).
	VMOVUPS(f32(1), t)
	VSUBPS(phi, t, t)
	i.and(u32(0x80000000), x, phi)
	i.or(phi, t)
	VMOVUPS(f32(0.5), phi)
	VFMADD213PS(phi, phi, t)
	return t, e
}

func (i isa) and(m Mem, a, dst reg.VecVirtual) {
	if i.w == 16 {
		VPANDD(m, a, dst)
	} else {
		VPAND(m, a, dst)
	}
}

func (i isa) or(a, dst reg.VecVirtual) {
	if i.w == 16 {
		VPORD(a, dst, dst)
	} else {
		VPOR(a, dst, dst)
	}
}

func (i isa) pxor(a Op, b, dst reg.VecVirtual) {
	if i.w == 16 {
		VPXORD(a, b, dst)
	} else {
		VPXOR(a, b, dst)
	}
}
