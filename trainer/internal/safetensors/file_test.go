package safetensors

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// referenceTensors are what scripts/interop/safetensors_golden.py wrote with
// Hugging Face's library; the floats are given before rounding.
func referenceTensors() []Tensor {
	inf := float32(math.Inf(-1))
	return []Tensor{
		{"g.u8", U8, []int{4}, []byte{0, 1, 254, 255}},
		{"f.f16", F16, []int{7}, []float32{1, 1.00048828125, 1.00146484375, 65504, -6e-8, 2.9e-8, 0.1}},
		{"e.bf16", BF16, []int{6}, []float32{1, 1.00390625, 1.01171875, 3.38e38, -1e-40, 0.1}},
		{"d.empty", F32, []int{0, 3}, []float32{}},
		{"c.scalar", F32, nil, []float32{-2.5}},
		{"b.f32", F32, []int{2, 3}, []float32{0, float32(math.Copysign(0, -1)), 1.5, math.MaxFloat32, 1e-45, inf}},
		{"a.i64", I64, []int{4}, []int64{math.MinInt64, -1, 0, math.MaxInt64}},
	}
}

func TestWriteEqualsReferenceLibrary(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "reference.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := Write(&got, map[string]string{"format": "pt"}, referenceTensors()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("bytes differ:\n%q\nwant\n%q", got.Bytes(), want)
	}
}

func TestReadReferenceLibrary(t *testing.T) {
	r, err := Open(filepath.Join("testdata", "reference.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, want := r.Metadata(), map[string]string{"format": "pt"}; !reflect.DeepEqual(got, want) {
		t.Errorf("metadata %v, want %v", got, want)
	}
	for _, want := range referenceTensors() {
		got := read(t, r, want.Name)
		if got.DType != want.DType || !equalShape(got.Shape, want.Shape) {
			t.Errorf("%s is %s %v, want %s %v", want.Name, got.DType, got.Shape, want.DType, want.Shape)
		}
		if !sameBits(got.Data, rounded(want)) {
			t.Errorf("%s is %v, want %v", want.Name, got.Data, want.Data)
		}
	}
}

func equalShape(a, b []int) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }

// rounded applies the rounding that convert_test.go proves.
func rounded(t Tensor) any {
	data, ok := t.Data.([]float32)
	if !ok {
		return t.Data
	}
	out := make([]float32, len(data))
	for i, v := range data {
		switch t.DType {
		case F16:
			v = f16ToF32(f32ToF16(v))
		case BF16:
			v = bf16ToF32(f32ToBF16(v))
		}
		out[i] = v
	}
	return out
}

// sameBits compares NaN and signed zero by their bits.
func sameBits(a, b any) bool {
	x, ok := a.([]float32)
	if !ok {
		return reflect.DeepEqual(a, b)
	}
	y, ok := b.([]float32)
	if !ok || len(x) != len(y) {
		return false
	}
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return false
		}
	}
	return true
}

func read(t *testing.T, r *Reader, name string) Tensor {
	t.Helper()
	info, ok := r.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q among %v", name, r.Tensors())
	}
	out := Tensor{Name: name, DType: info.DType, Shape: info.Shape}
	var err error
	switch info.DType {
	case F32, F16, BF16:
		data := make([]float32, info.Len())
		err, out.Data = r.ReadFloat32(name, data), data
	case U8:
		data := make([]byte, info.Len())
		err, out.Data = r.ReadBytes(name, data), data
	case I64:
		data := make([]int64, info.Len())
		err, out.Data = r.ReadInt64(name, data), data
	case U64:
		data := make([]uint64, info.Len())
		err, out.Data = r.ReadUint64(name, data), data
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func randomTensors(r *rand.Rand) []Tensor {
	var out []Tensor
	for i := range r.IntN(6) {
		t := Tensor{Name: strings.Repeat("ä\"<&>\\\u2028", r.IntN(2)) + string(rune('a'+i))}
		n := 1
		for range r.IntN(4) {
			// Sometimes longer than a chunk.
			dim := []int{0, 1, 2, 3, 7, 50, 33}[r.IntN(7)]
			t.Shape = append(t.Shape, dim)
			n *= dim
		}
		switch t.DType = []DType{F32, F16, BF16, U8, I64, U64}[r.IntN(6)]; t.DType {
		case U8:
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			t.Data = data
		case I64:
			data := make([]int64, n)
			for i := range data {
				data[i] = int64(r.Uint64())
			}
			t.Data = data
		case U64:
			data := make([]uint64, n)
			for i := range data {
				data[i] = r.Uint64()
			}
			t.Data = data
		default:
			data := make([]float32, n)
			for i := range data {
				data[i] = float32(r.NormFloat64()) * float32(math.Ldexp(1, r.IntN(30)-20))
			}
			t.Data = data
		}
		out = append(out, t)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		tensors := randomTensors(r)
		metadata := map[string]string{"format": "pt", "k\"<": "v\n\u2028"}
		var b bytes.Buffer
		if err := Write(&b, metadata, tensors); err != nil {
			t.Fatal(err)
		}
		rd, err := open(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rd.Metadata(), metadata) {
			t.Fatalf("metadata %v, want %v", rd.Metadata(), metadata)
		}
		if len(rd.Tensors()) != len(tensors) {
			t.Fatalf("%d tensors, want %d", len(rd.Tensors()), len(tensors))
		}
		for _, want := range tensors {
			got := read(t, rd, want.Name)
			if got.DType != want.DType || !equalShape(got.Shape, want.Shape) || !sameBits(got.Data, rounded(want)) {
				t.Fatalf("wrote %v, read %v", want, got)
			}
			if info, _ := rd.Tensor(want.Name); (rd.data+info.begin)%int64(want.DType.Size()) != 0 {
				t.Fatalf("%s %q is not aligned", want.DType, want.Name)
			}
		}
		var again bytes.Buffer
		r.Shuffle(len(tensors), func(i, j int) { tensors[i], tensors[j] = tensors[j], tensors[i] })
		if err := Write(&again, metadata, tensors); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Fatal("the order of tensors changes the bytes")
		}
	}
}

func TestEachFloat32(t *testing.T) {
	want := make([]float32, 3*chunk/4+5)
	for i := range want {
		want[i] = float32(i % 128)
	}
	for _, d := range []DType{F32, F16, BF16} {
		var b bytes.Buffer
		if err := Write(&b, nil, []Tensor{{"0before", d, []int{1}, want[:1]}, {"a", d, []int{len(want)}, want}}); err != nil {
			t.Fatal(err)
		}
		r, err := open(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var got []float32
		if err := r.EachFloat32("a", func(part []float32) error { got = append(got, part...); return nil }); err != nil {
			t.Fatal(err)
		}
		if !sameBits(got, want) {
			t.Errorf("%s: parts do not make the tensor", d)
		}
		calls := 0
		if err := r.EachFloat32("a", func([]float32) error { calls++; return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) || calls != 1 {
			t.Errorf("%s: %d calls and %v after an error", d, calls, err)
		}
		if err := r.EachFloat32("x", nil); err == nil {
			t.Error("a missing tensor gives no error")
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	one := []float32{1}
	for name, c := range map[string]struct {
		tensors  []Tensor
		metadata map[string]string
		want     string
	}{
		"wrong data type":   {[]Tensor{{"a", U8, []int{1}, one}}, nil, `[]float32 cannot be written as dtype "U8"`},
		"unknown dtype":     {[]Tensor{{"a", "F8", []int{1}, one}}, nil, `"F8"`},
		"no data":           {[]Tensor{{"a", F32, []int{1}, nil}}, nil, "<nil>"},
		"wrong shape":       {[]Tensor{{"a", F32, []int{2}, one}}, nil, "does not hold 1 elements"},
		"negative shape":    {[]Tensor{{"a", F32, []int{-1, -1}, one}}, nil, "negative"},
		"overflowing shape": {[]Tensor{{"a", F32, []int{math.MaxInt, 2}, one}}, nil, "too many"},
		"twice":             {[]Tensor{{"a", F32, []int{1}, one}, {"a", F32, []int{1}, one}}, nil, "twice"},
		"reserved name":     {[]Tensor{{metadataKey, F32, []int{1}, one}}, nil, "name"},
		"name not utf-8":    {[]Tensor{{"\xff", F32, []int{1}, one}}, nil, "name"},
		"metadata not utf8": {nil, map[string]string{"k": "\xff"}, "UTF-8"},
		"too large for f16": {[]Tensor{{"a", F16, []int{1}, []float32{65520}}}, nil, "65520 is too large for F16"},
		"for bf16":          {[]Tensor{{"a", BF16, []int{1}, []float32{-math.MaxFloat32}}}, nil, "too large for BF16"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Write(io.Discard, c.metadata, c.tensors)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestWriteKeepsInfinityAndNaN(t *testing.T) {
	want := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for _, d := range []DType{F32, F16, BF16} {
		var b bytes.Buffer
		if err := Write(&b, nil, []Tensor{{"a", d, []int{3}, want}}); err != nil {
			t.Fatal(err)
		}
		r, err := open(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, r, "a").Data.([]float32)
		if got[0] != want[0] || got[1] != want[1] || got[2] == got[2] {
			t.Errorf("%s: got %v, want %v", d, got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	r, err := Open(filepath.Join("testdata", "reference.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"missing":      {r.ReadFloat32("x", nil), `no tensor "x"`},
		"wrong length": {r.ReadFloat32("b.f32", make([]float32, 5)), "shape [2 3], 6 elements, want 5"},
		"not a float":  {r.ReadFloat32("a.i64", make([]float32, 4)), "dtype I64"},
		"not bytes":    {r.ReadBytes("b.f32", make([]byte, 24)), "dtype F32"},
		"not int64":    {r.ReadInt64("g.u8", make([]int64, 4)), "dtype U8"},
		"not uint64":   {r.ReadUint64("a.i64", make([]uint64, 4)), "dtype I64"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !strings.Contains(c.err.Error(), "reference.safetensors") {
				t.Errorf("got %v, want an error with the file and %q", c.err, c.want)
			}
		})
	}
}

// TestFileShrinksAfterOpen meets a file that another process truncates.
func TestFileShrinksAfterOpen(t *testing.T) {
	b := file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8)
	r, err := NewReader(bytes.NewReader(b[:len(b)-1]), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ReadFloat32("a", make([]float32, 2)); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("got %v, want unexpected EOF with the tensor's name", err)
	}
}

func TestReadNeedsConstantMemory(t *testing.T) {
	data := make([]float32, 1<<20)
	var b bytes.Buffer
	if err := Write(&b, nil, []Tensor{{"a", F32, []int{len(data)}, data}}); err != nil {
		t.Fatal(err)
	}
	r, err := open(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := r.ReadFloat32("a", data); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*chunk {
		t.Errorf("%d bytes allocated to read %d", n, 4*len(data))
	}
}

func BenchmarkReadFloat32(b *testing.B) {
	data := make([]float32, 1<<20)
	for _, d := range []DType{F32, F16, BF16} {
		b.Run(string(d), func(b *testing.B) {
			var buf bytes.Buffer
			if err := Write(&buf, nil, []Tensor{{"a", d, []int{len(data)}, data}}); err != nil {
				b.Fatal(err)
			}
			r, err := open(buf.Bytes())
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(d.Size() * len(data)))
			for b.Loop() {
				if err := r.ReadFloat32("a", data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
