package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// file puts a header and n bytes of data into a file.
func file(header string, n int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, n)...)
}

func open(b []byte) (*Reader, error) { return NewReader(bytes.NewReader(b), int64(len(b))) }

func TestHostileHeaders(t *testing.T) {
	const ok = `"dtype":"F32","shape":[2],"data_offsets":[0,8]`
	length := func(n uint64, rest string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, n), rest...)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty file":                  {nil, "too short"},
		"half a length":               {[]byte{1, 0, 0}, "too short"},
		"length without header":       {length(2, ""), "header of 2 bytes"},
		"length beyond the file":      {length(1000, "{}"), "header of 1000 bytes"},
		"length beyond the limit":     {length(maxHeader+1, "{}"), "header of 100000001 bytes"},
		"length with the top bit":     {length(1<<63, "{}"), "header of 9223372036854775808 bytes"},
		"length of all ones":          {length(1<<64-1, "{}"), "header of 18446744073709551615 bytes"},
		"length zero":                 {length(0, "{}"), "does not start with {"},
		"leading space":               {file(` {}`, 0), "does not start with {"},
		"an array":                    {file(`[]`, 0), "does not start with {"},
		"not json":                    {file(`{x`, 0), "header"},
		"unclosed":                    {file(`{"a":{`, 0), "unexpected EOF"},
		"second value":                {file(`{}{}`, 0), "goes on after"},
		"nul padding":                 {file("{}\x00\x00", 0), "goes on after"},
		"not utf-8":                   {file("{\"\xff\":{"+ok+"}}", 8), "not UTF-8"},
		"nested deeply":               {file(`{"a":`+strings.Repeat(`{"a":`, 100000)+strings.Repeat("}", 100001), 0), "unknown key"},
		"brackets nested deeply":      {file(`{"a":{"shape":`+strings.Repeat(`[`, 100000), 0), "want a number"},
		"tensor is a number":          {file(`{"a":1}`, 0), `tensor "a"`},
		"tensor is null":              {file(`{"a":null}`, 0), `tensor "a"`},
		"tensor without fields":       {file(`{"a":{}}`, 0), "want dtype, shape and two data_offsets"},
		"missing dtype":               {file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8), "want dtype"},
		"missing shape":               {file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), "want dtype"},
		"missing offsets":             {file(`{"a":{"dtype":"F32","shape":[2]}}`, 8), "want dtype"},
		"unknown field":               {file(`{"a":{`+ok+`,"x":1}}`, 8), `unknown key "x"`},
		"field in capitals":           {file(`{"a":{"DType":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), `unknown key "DType"`},
		"duplicate tensor":            {file(`{"a":{`+ok+`},"a":{`+ok+`}}`, 8), `"a" appears twice`},
		"duplicate escaped":           {file(`{"a":{`+ok+`},"\u0061":{`+ok+`}}`, 8), `"a" appears twice`},
		"duplicate field":             {file(`{"a":{"shape":[2],`+ok+`}}`, 8), `"shape" appears twice`},
		"duplicate metadata":          {file(`{"__metadata__":{},"__metadata__":{}}`, 0), "appears twice"},
		"duplicate metadata key":      {file(`{"__metadata__":{"k":"1","k":"2"}}`, 0), `"k" appears twice`},
		"metadata is a string":        {file(`{"__metadata__":"x"}`, 0), metadataKey},
		"metadata value is a number":  {file(`{"__metadata__":{"k":1}}`, 0), "want a string"},
		"metadata value is an object": {file(`{"__metadata__":{"k":{}}}`, 0), "want a string"},
		"unknown dtype":               {file(`{"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}`, 8), `unknown dtype "F33"`},
		"dtype in small letters":      {file(`{"a":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}}`, 8), `unknown dtype "f32"`},
		"dtype is a number":           {file(`{"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}}`, 8), "want a string"},
		"shape is a number":           {file(`{"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}}`, 8), "shape"},
		"shape is null":               {file(`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4), "shape"},
		"negative dimension":          {file(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "-2 is no integer"},
		"two negative dimensions":     {file(`{"a":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}}`, 8), "-2 is no integer"},
		"fractional dimension":        {file(`{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8), "2.0 is no integer"},
		"exponent":                    {file(`{"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}`, 8), "2e0 is no integer"},
		"dimension beyond int64":      {file(`{"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}}`, 8), "is no integer"},
		"dimension is text":           {file(`{"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}`, 8), "want a number"},
		"elements overflow":           {file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "too many elements"},
		"bytes overflow":              {file(`{"a":{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}}`, 8), "too many elements"},
		"bytes overflow the sign":     {file(`{"a":{"dtype":"F32","shape":[2305843009213693953],"data_offsets":[0,8]}}`, 8), "too many elements"},
		"too many dimensions":         {file(`{"a":{"dtype":"F32","shape":[`+strings.Repeat("1,", maxDims)+`2],"data_offsets":[0,8]}}`, 8), "more than 64 numbers"},
		"shape larger than bytes":     {file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "has 12 bytes"},
		"shape smaller than bytes":    {file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}}`, 8), "has 4 bytes"},
		"negative offset":             {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}`, 8), "-8 is no integer"},
		"offsets backwards":           {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "run backwards"},
		"one offset":                  {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8]}}`, 8), "two data_offsets"},
		"three offsets":               {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8), "more than 2 numbers"},
		"offset beyond the file":      {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[1000,1008]}}`, 8), "belong to none"},
		"truncated data":              {file(`{"a":{`+ok+`}}`, 7), "truncated"},
		"extra data":                  {file(`{"a":{`+ok+`}}`, 9), "extra bytes"},
		"data without tensors":        {file(`{}`, 1), "extra bytes"},
		"hole at the start":           {file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "belong to none"},
		"hole between":                {file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), "belong to none"},
		"overlap":                     {file(`{"a":{`+ok+`},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "inside the one before"},
		"same place":                  {file(`{"a":{`+ok+`},"b":{`+ok+`}}`, 8), "inside the one before"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open(c.file)
			if err == nil {
				t.Fatalf("accepted with %v", r.Tensors())
			}
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want ErrFormat with %q", err, c.want)
			}
			if len(err.Error()) > 500 {
				t.Errorf("error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAcceptedHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want int // tensors
	}{
		"none":               {file(`{}`, 0), 0},
		"padded":             {file("{}\n\t    ", 0), 0},
		"metadata only":      {file(`{"__metadata__":{"format":"pt"}}`, 0), 0},
		"scalar":             {file(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 4), 1},
		"empty tensors":      {file(`{"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), 2},
		"any order":          {file(`{"b":{"data_offsets":[4,5],"shape":[1],"dtype":"BOOL"},"a":{"dtype":"F16","data_offsets":[0,4],"shape":[2,1]}}`, 5), 2},
		"types of no use":    {file(`{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, 8), 1},
		"empty amid tensors": {file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open(c.file)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(r.Tensors()); got != c.want {
				t.Errorf("%d tensors, want %d", got, c.want)
			}
		})
	}
}

// TestLyingLengthsAllocateNothing would take 100 MB or an exabyte if the file
// were believed.
func TestLyingLengthsAllocateNothing(t *testing.T) {
	files := [][]byte{
		append(binary.LittleEndian.AppendUint64(nil, maxHeader), "{}"...),
		file(`{"a":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":[0,4611686018427387904]}}`, 8),
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, f := range files {
		if _, err := open(f); !errors.Is(err, ErrFormat) {
			t.Errorf("got %v, want ErrFormat", err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(file(`{}`, 0))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f.Add(file(`{"a":{"dtype":"BF16","shape":[2,0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1))
	f.Add(file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := open(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error does not wrap ErrFormat: %v", err)
			}
			return
		}
		// Whatever is accepted fits into the file, so it may be allocated and read.
		total := 0
		for _, info := range r.Tensors() {
			n := info.Len()
			total += n * info.DType.Size()
			if total > len(b) {
				t.Fatalf("tensors of %d bytes in a file of %d", total, len(b))
			}
			var err error
			switch info.DType {
			case F32, F16, BF16:
				err = r.ReadFloat32(info.Name, make([]float32, n))
			case U8:
				err = r.ReadBytes(info.Name, make([]byte, n))
			case I64:
				err = r.ReadInt64(info.Name, make([]int64, n))
			case U64:
				err = r.ReadUint64(info.Name, make([]uint64, n))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
