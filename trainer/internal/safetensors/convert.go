package safetensors

import "math"

// f16ToF32 is exact: every binary16 value is a float32. The payload of a NaN stays.
func f16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h >> 10 & 0x1f)
	frac := uint32(h & 0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24
		v := math.Float32bits(float32(frac) * 0x1p-24)
		return math.Float32frombits(sign | v)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// f32ToF16 rounds to nearest, ties to even. Values from 65520 on become
// infinite; a NaN stays one, made quiet.
func f32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	abs := bits &^ (1 << 31)
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00 | uint16(abs>>13&0x3ff)
	case abs >= 0x477ff000: // 65520, half-way to what would be the next value
		return sign | 0x7c00
	case abs < 0x38800000: // below 2^-14: subnormal
		// Adding 0.5 moves the bits of worth 2^-24 to the end of the fraction, and
		// the addition rounds to nearest even by itself.
		v := math.Float32bits(math.Float32frombits(abs) + 0.5)
		return sign | uint16(v-0x3f000000)
	}
	// A carry out of the fraction raises the exponent, as it should.
	abs += 0xfff + abs>>13&1
	return sign | uint16(abs>>13-(127-15)<<10)
}

func bf16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// f32ToBF16 rounds to nearest, ties to even; a NaN stays one, made quiet.
func f32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&^(1<<31) > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
