package kernel

import "unsafe"

func load(p unsafe.Pointer, offset int) float32 { return *(*float32)(unsafe.Add(p, offset)) }

// portableTile returns a tile kernel of the given rows, up to 4 columns.
func portableTile(rows int) tileFunc {
	return func(p *byte) {
		t := (*tile)(unsafe.Pointer(p))
		for i := range rows {
			for j := range t.n {
				sum := load(t.init, i*t.initLD+4*j)
				a, b := unsafe.Add(t.a, i*t.rs), unsafe.Add(t.b, 4*j)
				for k := range t.k {
					sum += float32(load(a, k*t.cs) * load(b, 16*k))
				}
				*(*float32)(unsafe.Add(t.c, i*t.ldc+4*j)) = sum
			}
		}
	}
}

// portableTile4 is a tile of 4 x 4 in registers.
func portableTile4(p *byte) {
	t := (*tile)(unsafe.Pointer(p))
	if t.n < 4 {
		portableTile(4)(p)
		return
	}
	c := (*[4]float32)(t.init)
	c00, c01, c02, c03 := c[0], c[1], c[2], c[3]
	c = (*[4]float32)(unsafe.Add(t.init, t.initLD))
	c10, c11, c12, c13 := c[0], c[1], c[2], c[3]
	c = (*[4]float32)(unsafe.Add(t.init, 2*t.initLD))
	c20, c21, c22, c23 := c[0], c[1], c[2], c[3]
	c = (*[4]float32)(unsafe.Add(t.init, 3*t.initLD))
	c30, c31, c32, c33 := c[0], c[1], c[2], c[3]
	for k := range t.k {
		// From the beginning each time: a pointer that is moved on would leave
		// its matrix behind the last k, which the collector does not bear.
		a, v := unsafe.Add(t.a, k*t.cs), (*[4]float32)(unsafe.Add(t.b, 16*k))
		b0, b1, b2, b3 := v[0], v[1], v[2], v[3]
		x := load(a, 0)
		c00 += float32(x * b0)
		c01 += float32(x * b1)
		c02 += float32(x * b2)
		c03 += float32(x * b3)
		x = load(a, t.rs)
		c10 += float32(x * b0)
		c11 += float32(x * b1)
		c12 += float32(x * b2)
		c13 += float32(x * b3)
		x = load(a, 2*t.rs)
		c20 += float32(x * b0)
		c21 += float32(x * b1)
		c22 += float32(x * b2)
		c23 += float32(x * b3)
		x = load(a, 3*t.rs)
		c30 += float32(x * b0)
		c31 += float32(x * b1)
		c32 += float32(x * b2)
		c33 += float32(x * b3)
	}
	*(*[4]float32)(t.c) = [4]float32{c00, c01, c02, c03}
	*(*[4]float32)(unsafe.Add(t.c, t.ldc)) = [4]float32{c10, c11, c12, c13}
	*(*[4]float32)(unsafe.Add(t.c, 2*t.ldc)) = [4]float32{c20, c21, c22, c23}
	*(*[4]float32)(unsafe.Add(t.c, 3*t.ldc)) = [4]float32{c30, c31, c32, c33}
}
