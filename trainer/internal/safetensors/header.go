package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	lengthSize = 8
	// maxHeader is the format's own limit.
	maxHeader = 100_000_000
	// maxDims bounds what two bytes of header can make us allocate.
	maxDims = 64

	metadataKey = "__metadata__"
)

// ErrFormat is wrapped by every error about the content of a file.
var ErrFormat = errors.New("invalid safetensors file")

// Info describes one tensor of a file.
type Info struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar

	begin, end int64 // bytes, from the start of the data
}

// Len returns the number of elements.
func (t Info) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d // checked not to overflow when the header was read
	}
	return n
}

type header struct {
	metadata map[string]string
	tensors  []Info // in the order of their data
}

func formatError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// parseHeader reads the JSON and checks that its tensors fill dataSize bytes
// exactly, one after the other.
func parseHeader(raw []byte, dataSize int64) (*header, error) {
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return nil, formatError("header does not start with {")
	case !utf8.Valid(raw):
		return nil, formatError("header is not UTF-8")
	}
	p := headerParser{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	h, err := p.header()
	if err != nil {
		return nil, err
	}
	if err := checkLayout(h.tensors, dataSize); err != nil {
		return nil, err
	}
	return h, nil
}

// checkLayout sorts the tensors by place.
func checkLayout(tensors []Info, dataSize int64) error {
	slices.SortFunc(tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	var at int64
	for _, t := range tensors {
		switch {
		case t.begin < at:
			return formatError("tensor %q starts at byte %d, inside the one before, which ends at %d", t.Name, t.begin, at)
		case t.begin > at:
			return formatError("%d bytes before tensor %q, at byte %d, belong to none", t.begin-at, t.Name, t.begin)
		}
		at = t.end
	}
	if at != dataSize {
		return formatError("header describes %d bytes of data, the file has %d: it is truncated or has extra bytes", at, dataSize)
	}
	return nil
}

// headerParser walks the tokens itself: unmarshalling into a map would let the
// last of two equal keys win and would accept any nesting.
type headerParser struct{ dec *json.Decoder }

func (p headerParser) token() (json.Token, error) {
	tok, err := p.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, formatError("header: %v", err)
	}
	return tok, nil
}

func (p headerParser) delim(want json.Delim, where string) error {
	tok, err := p.token()
	if err != nil {
		return err
	}
	if tok != want {
		return formatError("%s: found %v, want %q", where, tok, want.String())
	}
	return nil
}

// object calls value for every key, after which the value must be consumed.
func (p headerParser) object(where string, value func(key string) error) error {
	if err := p.delim('{', where); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return err
		}
		key := tok.(string) // the decoder lets nothing else be a key
		if seen[key] {
			return formatError("%s: %q appears twice", where, key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	return p.delim('}', where)
}

func (p headerParser) str(where string) (string, error) {
	tok, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", formatError("%s: found %v, want a string", where, tok)
	}
	return s, nil
}

// ints reads an array of at most limit non-negative integers.
func (p headerParser) ints(where string, limit int) ([]int64, error) {
	if err := p.delim('[', where); err != nil {
		return nil, err
	}
	var out []int64
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return nil, err
		}
		num, ok := tok.(json.Number)
		if !ok {
			return nil, formatError("%s: found %v, want a number", where, tok)
		}
		n, err := strconv.ParseUint(num.String(), 10, 63)
		if err != nil {
			return nil, formatError("%s: %.40s is no integer from 0 to %d", where, num, int64(math.MaxInt64))
		}
		if len(out) == limit {
			return nil, formatError("%s: more than %d numbers", where, limit)
		}
		out = append(out, int64(n))
	}
	return out, p.delim(']', where)
}

func (p headerParser) header() (*header, error) {
	h := &header{metadata: map[string]string{}}
	err := p.object("header", func(name string) error {
		if name == metadataKey {
			return p.object(metadataKey, func(key string) error {
				value, err := p.str(metadataKey)
				h.metadata[key] = value
				return err
			})
		}
		t, err := p.tensor(name)
		h.tensors = append(h.tensors, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, formatError("header goes on after its closing }")
	}
	return h, nil
}

func (p headerParser) tensor(name string) (Info, error) {
	t := Info{Name: name}
	where := fmt.Sprintf("tensor %q", name)
	var shape, offsets []int64
	fields := 0
	err := p.object(where, func(key string) (err error) {
		fields++
		switch key {
		case "dtype":
			var s string
			s, err = p.str(where + ": dtype")
			t.DType = DType(s)
		case "shape":
			shape, err = p.ints(where+": shape", maxDims)
		case "data_offsets":
			offsets, err = p.ints(where+": data_offsets", 2)
		default:
			err = formatError("%s: unknown key %q", where, key)
		}
		return err
	})
	switch {
	case err != nil:
		return t, err
	case fields != 3 || len(offsets) != 2:
		return t, formatError("%s: want dtype, shape and two data_offsets", where)
	case t.DType.Size() == 0:
		return t, formatError("%s: unknown dtype %q", where, t.DType)
	case offsets[1] < offsets[0]:
		return t, formatError("%s: data_offsets %v run backwards", where, offsets)
	}
	t.begin, t.end = offsets[0], offsets[1]
	size, err := byteSize(t.DType, shape)
	if err != nil {
		return t, formatError("%s: %v", where, err)
	}
	if size != t.end-t.begin {
		return t, formatError("%s: %s of shape %v has %d bytes, data_offsets say %d", where, t.DType, shape, size, t.end-t.begin)
	}
	t.Shape = make([]int, len(shape))
	for i, d := range shape {
		t.Shape[i] = int(d)
	}
	return t, nil
}

// byteSize returns the bytes of a tensor, or an error when they, or the element
// count, do not fit an int.
func byteSize(d DType, shape []int64) (int64, error) {
	n := uint64(d.Size())
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		hi, lo := bits.Mul64(n, uint64(dim))
		if hi != 0 || lo > math.MaxInt || dim > math.MaxInt {
			return 0, fmt.Errorf("shape %v has too many elements", shape)
		}
		n = lo
	}
	return int64(n), nil
}
