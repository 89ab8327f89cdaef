package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Tensor is one tensor to be written. Data is []float32 for F32, F16 and BF16,
// []byte for U8, []int64 for I64 and []uint64 for U64, row-major, and is only read.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  any
}

// Write streams a file to w. The bytes depend on the tensors and metadata alone,
// not on their order: tensors are sorted by element size, largest first, so that
// all are aligned, then by name. F16 and BF16 round to nearest, ties to even; a
// finite value too large for them is an error.
//
// Everything but such a value is checked before the first byte is written. Write
// does not buffer across tensors and knows nothing of files: see package
// atomicfile.
func Write(w io.Writer, metadata map[string]string, tensors []Tensor) error {
	tensors = slices.Clone(tensors)
	slices.SortFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), cmp.Compare(a.Name, b.Name))
	})
	head, err := encodeHeader(metadata, tensors)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := writeData(w, t); err != nil {
			return err
		}
	}
	return nil
}

// encodeHeader returns length and header of sorted tensors.
func encodeHeader(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, lengthSize))
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	put := func(sep string, v any) error {
		out.WriteString(sep)
		if err := enc.Encode(v); err != nil {
			return err
		}
		out.Truncate(out.Len() - 1) // Encode's newline
		return nil
	}
	sep := "{"
	if len(metadata) > 0 {
		for _, k := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(k) || !utf8.ValidString(metadata[k]) {
				return nil, fmt.Errorf("metadata %q: %q is not UTF-8", k, metadata[k])
			}
		}
		out.WriteString(sep)
		if err := put(`"`+metadataKey+`":`, metadata); err != nil { // json sorts the keys
			return nil, err
		}
		sep = ","
	}
	var at int64
	seen := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		size, err := checkTensor(t)
		switch {
		case err != nil:
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		case seen[t.Name]:
			return nil, fmt.Errorf("tensor %q appears twice", t.Name)
		case size > math.MaxInt64-at:
			return nil, fmt.Errorf("tensor %q: more than %d bytes in one file", t.Name, int64(math.MaxInt64))
		}
		seen[t.Name] = true
		if err := put(sep, t.Name); err != nil {
			return nil, err
		}
		sep = ","
		if err := put(":", struct {
			DType   DType    `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, append([]int{}, t.Shape...), [2]int64{at, at + size}}); err != nil {
			return nil, err
		}
		at += size
	}
	if sep == "{" {
		out.WriteString(sep)
	}
	out.WriteString("}")
	for out.Len()%8 != 0 {
		out.WriteByte(' ')
	}
	n := out.Len() - lengthSize
	if n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes, the format allows %d", n, maxHeader)
	}
	head := out.Bytes()
	binary.LittleEndian.PutUint64(head, uint64(n))
	return head, nil
}

// checkTensor returns the bytes that t will take.
func checkTensor(t Tensor) (int64, error) {
	var n int
	ok := false
	switch data := t.Data.(type) {
	case []float32:
		n, ok = len(data), t.DType == F32 || t.DType == F16 || t.DType == BF16
	case []byte:
		n, ok = len(data), t.DType == U8
	case []int64:
		n, ok = len(data), t.DType == I64
	case []uint64:
		n, ok = len(data), t.DType == U64
	}
	shape := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		shape[i] = int64(d)
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("data of type %T cannot be written as dtype %q", t.Data, t.DType)
	case t.Name == metadataKey || !utf8.ValidString(t.Name):
		return 0, fmt.Errorf("the format does not allow this name")
	case len(shape) > maxDims:
		return 0, fmt.Errorf("%d dimensions, want at most %d", len(shape), maxDims)
	}
	size, err := byteSize(t.DType, shape)
	if err != nil {
		return 0, err
	}
	if size != int64(n)*int64(t.DType.Size()) {
		return 0, fmt.Errorf("shape %v does not hold %d elements", t.Shape, n)
	}
	return size, nil
}

func writeData(w io.Writer, t Tensor) error {
	le := binary.LittleEndian
	switch data := t.Data.(type) {
	case []byte:
		_, err := w.Write(data)
		return err
	case []int64:
		return inChunks(w, data, 8, func(dst []byte, v int64) error { le.PutUint64(dst, uint64(v)); return nil })
	case []uint64:
		return inChunks(w, data, 8, func(dst []byte, v uint64) error { le.PutUint64(dst, v); return nil })
	}
	data := t.Data.([]float32)
	if t.DType == F32 {
		return inChunks(w, data, 4, func(dst []byte, v float32) error { le.PutUint32(dst, math.Float32bits(v)); return nil })
	}
	encode, infinity := f32ToF16, uint16(0x7c00)
	if t.DType == BF16 {
		encode, infinity = f32ToBF16, 0x7f80
	}
	return inChunks(w, data, 2, func(dst []byte, v float32) error {
		h := encode(v)
		if h&0x7fff == infinity && !math.IsInf(float64(v), 0) {
			return fmt.Errorf("tensor %q: %g is too large for %s: save as F32", t.Name, v, t.DType)
		}
		le.PutUint16(dst, h)
		return nil
	})
}

// inChunks writes data through a small buffer.
func inChunks[T any](w io.Writer, data []T, size int, put func(dst []byte, v T) error) error {
	buf := make([]byte, min(chunk, len(data)*size))
	for len(data) > 0 {
		n := min(len(data), chunk/size)
		for i, v := range data[:n] {
			if err := put(buf[i*size:(i+1)*size], v); err != nil {
				return err
			}
		}
		if _, err := w.Write(buf[:n*size]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
