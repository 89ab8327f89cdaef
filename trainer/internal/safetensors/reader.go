package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
)

// chunk is the buffer between a file and a caller's slice.
const chunk = 64 << 10

// Reader gives the tensors of one file. It may be used by several goroutines.
type Reader struct {
	r      io.ReaderAt
	data   int64 // where the data starts
	head   *header
	byName map[string]int
	name   string // of the file, for errors
	close  func() error
}

// Open reads and checks the header of a file. Close the Reader after use.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	r, err := newReader(f, info.Size(), path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.close = f.Close
	return r, nil
}

// NewReader reads and checks the header of size bytes in r.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	return newReader(r, size, "safetensors")
}

func newReader(r io.ReaderAt, size int64, name string) (*Reader, error) {
	fail := func(err error) (*Reader, error) { return nil, fmt.Errorf("%s: %w", name, err) }
	if size < lengthSize {
		return fail(formatError("%d bytes, too short for a header", size))
	}
	var length [lengthSize]byte
	if err := readFull(r, length[:], 0); err != nil {
		return fail(err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-lengthSize {
		return fail(formatError("header of %d bytes in a file of %d, want at most %d", n, size, min(maxHeader, size-lengthSize)))
	}
	raw := make([]byte, n)
	if err := readFull(r, raw, lengthSize); err != nil {
		return fail(err)
	}
	data := lengthSize + int64(n)
	head, err := parseHeader(raw, size-data)
	if err != nil {
		return fail(err)
	}
	byName := make(map[string]int, len(head.tensors))
	for i, t := range head.tensors {
		byName[t.Name] = i
	}
	return &Reader{r: r, data: data, head: head, byName: byName, name: name}, nil
}

func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil // ReadAt may say EOF with the last byte
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(p), at, err)
}

// Close closes a file that Open opened.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// Metadata returns a copy of the file's __metadata__, empty when it has none.
func (r *Reader) Metadata() map[string]string { return maps.Clone(r.head.metadata) }

// Tensors returns all tensors in the order of their data.
func (r *Reader) Tensors() []Info { return slices.Clone(r.head.tensors) }

// Tensor returns the tensor with the given name, and whether there is one.
func (r *Reader) Tensor(name string) (Info, bool) {
	i, ok := r.byName[name]
	if !ok {
		return Info{}, false
	}
	return r.head.tensors[i], true
}

// ReadFloat32 fills dst with a tensor of type F32, F16 or BF16, whose length must
// be that of dst. It needs 64 KiB beside dst. On an error dst holds nothing of use.
func (r *Reader) ReadFloat32(name string, dst []float32) error {
	t, err := r.find(name, len(dst), F32, F16, BF16)
	if err != nil {
		return err
	}
	return each(r, t, dst, floatDecoder(t.DType))
}

// EachFloat32 calls f with a tensor of type F32, F16 or BF16 in consecutive parts,
// valid during the call, and needs 128 KiB whatever the tensor's size. It stops at
// the first error of f and returns it.
func (r *Reader) EachFloat32(name string, f func(part []float32) error) error {
	t, _ := r.Tensor(name)
	t, err := r.find(name, t.Len(), F32, F16, BF16)
	if err != nil {
		return err
	}
	decode, size := floatDecoder(t.DType), t.DType.Size()
	buf, part := make([]byte, chunk), make([]float32, chunk/size)
	for at, left := r.data+t.begin, t.Len(); left > 0; {
		n := min(left, len(part))
		if err := r.readTensor(t, buf[:n*size], at); err != nil {
			return err
		}
		decode(part[:n], buf[:n*size])
		if err := f(part[:n]); err != nil {
			return err
		}
		at, left = at+int64(n*size), left-n
	}
	return nil
}

func floatDecoder(d DType) func(dst []float32, src []byte) {
	switch d {
	case F32:
		return func(dst []float32, src []byte) {
			for i := range dst {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
			}
		}
	case F16:
		return func(dst []float32, src []byte) {
			for i := range dst {
				dst[i] = f16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
			}
		}
	default:
		return func(dst []float32, src []byte) {
			for i := range dst {
				dst[i] = bf16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
			}
		}
	}
}

// ReadBytes fills dst with a U8 tensor of the same length.
func (r *Reader) ReadBytes(name string, dst []byte) error {
	t, err := r.find(name, len(dst), U8)
	if err != nil {
		return err
	}
	return each(r, t, dst, func(dst, src []byte) { copy(dst, src) })
}

// ReadInt64 fills dst with an I64 tensor of the same length.
func (r *Reader) ReadInt64(name string, dst []int64) error {
	t, err := r.find(name, len(dst), I64)
	if err != nil {
		return err
	}
	return each(r, t, dst, func(dst []int64, src []byte) {
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
		}
	})
}

// ReadUint64 fills dst with a U64 tensor of the same length.
func (r *Reader) ReadUint64(name string, dst []uint64) error {
	t, err := r.find(name, len(dst), U64)
	if err != nil {
		return err
	}
	return each(r, t, dst, func(dst []uint64, src []byte) {
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint64(src[8*i:])
		}
	})
}

func (r *Reader) find(name string, n int, types ...DType) (Info, error) {
	t, ok := r.Tensor(name)
	switch {
	case !ok:
		return t, fmt.Errorf("%s: no tensor %q", r.name, name)
	case !slices.Contains(types, t.DType):
		return t, fmt.Errorf("%s: tensor %q has dtype %s, want one of %v", r.name, name, t.DType, types)
	case t.Len() != n:
		return t, fmt.Errorf("%s: tensor %q has shape %v, %d elements, want %d", r.name, name, t.Shape, t.Len(), n)
	}
	return t, nil
}

// each decodes a tensor into dst, a chunk at a time.
func each[T any](r *Reader, t Info, dst []T, decode func(dst []T, src []byte)) error {
	size := t.DType.Size()
	buf := make([]byte, min(chunk, len(dst)*size))
	at := r.data + t.begin
	for len(dst) > 0 {
		n := min(len(dst), chunk/size)
		b := buf[:n*size]
		if err := r.readTensor(t, b, at); err != nil {
			return err
		}
		decode(dst[:n], b)
		dst, at = dst[n:], at+int64(len(b))
	}
	return nil
}

func (r *Reader) readTensor(t Info, p []byte, at int64) error {
	if err := readFull(r.r, p, at); err != nil {
		return fmt.Errorf("%s: tensor %q: %w", r.name, t.Name, err)
	}
	return nil
}
