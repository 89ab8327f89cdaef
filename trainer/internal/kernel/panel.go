package kernel

// pack brings rows [k0, k0+depth) of one panel of op(B) into order.
func (s *Set) pack(dst, b []float32, ldb int, trans bool, j0, cols, k0, depth int) {
	w := s.width
	if !trans {
		s.packPanel(ptr(dst), (*float32)(at(b, k0*ldb+j0)), depth, 4*ldb, 4*w, cols)
		return
	}
	if s.packTransposed != nil {
		blocks := depth / 8
		for j := 0; j < w; j += 8 {
			if blocks == 0 {
				break
			}
			if j+8 <= cols {
				s.packTransposed((*float32)(at(dst, j)), (*float32)(at(b, (j0+j)*ldb+k0)), blocks, 4*ldb, 4*w)
				continue
			}
			packScalar(dst, b, ldb, j0, j, min(j+8, w), cols, k0, 0, 8*blocks, w)
		}
		packScalar(dst, b, ldb, j0, 0, w, cols, k0, 8*blocks, depth, w)
		return
	}
	packScalar(dst, b, ldb, j0, 0, w, cols, k0, 0, depth, w)
}

// packScalar transposes columns [jFrom, jTo) and k in [kFrom, kTo), zero beyond cols.
func packScalar(dst, b []float32, ldb, j0, jFrom, jTo, cols, k0, kFrom, kTo, w int) {
	if kFrom >= kTo {
		return
	}
	for j := jFrom; j < jTo; j++ {
		if j >= cols {
			for k := kFrom; k < kTo; k++ {
				dst[k*w+j] = 0
			}
			continue
		}
		row := b[(j0+j)*ldb+k0:]
		for k := kFrom; k < kTo; k++ {
			dst[k*w+j] = row[k]
		}
	}
}
