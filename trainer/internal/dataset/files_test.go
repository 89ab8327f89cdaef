package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeSplit writes documents, each of as many bytes of text as ten times its
// tokens, and returns the directory.
func writeSplit(t *testing.T, name string, d DType, docs ...[]int32) (dir string, sm SplitMeta) {
	t.Helper()
	dir = t.TempDir()
	var bin, idx bytes.Buffer
	w := NewWriter(&bin, &idx, d)
	for _, doc := range docs {
		if err := w.Append(doc, 10*len(doc)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*bytes.Buffer{Bin(name): &bin, Idx(name): &idx} {
		if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, w.Counts()
}

func TestFilesOfTokens(t *testing.T) {
	for _, tt := range []struct {
		name  string
		dtype DType
		docs  [][]int32
		bin   []byte
	}{
		{"uint16", Uint16, [][]int32{{1, 0x1234}, {65535}}, []byte{1, 0, 0x34, 0x12, 0xff, 0xff}},
		{"uint32", Uint32, [][]int32{{65536}, {2}}, []byte{0, 0, 1, 0, 2, 0, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, sm := writeSplit(t, "val", tt.dtype, tt.docs...)
			raw, err := os.ReadFile(filepath.Join(dir, "val.bin"))
			if err != nil || !bytes.Equal(raw, tt.bin) {
				t.Fatalf("bytes % x, %v: want % x", raw, err, tt.bin)
			}
			meta := Meta{TokenDType: tt.dtype, Splits: map[string]SplitMeta{"val": sm}}
			f, x, err := meta.OpenSplit(dir, "val")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			all := slices.Concat(tt.docs...)
			got := make([]int32, len(all))
			if err := f.Read(got, 0); err != nil || !slices.Equal(got, all) {
				t.Errorf("tokens %v, %v: want %v", got, err, all)
			}
			if x.Len() != 2 || sm.Documents != 2 || sm.Tokens != int64(len(all)) || sm.Bytes != x.TotalBytes() || x.TotalBytes() != int64(10*len(all)) {
				t.Errorf("index of %d documents and %d bytes, counts %+v", x.Len(), x.TotalBytes(), sm)
			}
			for i, doc := range tt.docs {
				from, to := x.Tokens(i)
				if int(to-from) != len(doc) || x.Bytes(i) != int64(10*len(doc)) {
					t.Errorf("document %d has tokens %d to %d and %d bytes", i, from, to, x.Bytes(i))
				}
				for pos := from; pos < to; pos++ {
					if x.Document(pos) != i {
						t.Errorf("token %d is of document %d, want %d", pos, x.Document(pos), i)
					}
				}
			}
			for _, pos := range []int64{-1, f.Len()} {
				if f.Read(got[:1], pos) == nil {
					t.Errorf("token %d of %d can be read", pos, f.Len())
				}
			}
		})
	}
}

func TestReadCrossesItsBuffer(t *testing.T) {
	doc := make([]int32, 3*readTokens+7)
	for i := range doc {
		doc[i] = int32(i % 60000)
	}
	for _, dtype := range []DType{Uint16, Uint32} {
		dir, _ := writeSplit(t, "train", dtype, doc)
		f, err := Open(filepath.Join(dir, "train.bin"), dtype)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := make([]int32, len(doc)-5)
		if err := f.Read(got, 3); err != nil || !slices.Equal(got, doc[3:len(doc)-2]) {
			t.Errorf("%s: wrong tokens, %v", dtype, err)
		}
	}
}

func TestDTypeFor(t *testing.T) {
	for vocab, want := range map[int]DType{257: Uint16, 65535: Uint16, 65536: Uint32, 100000: Uint32} {
		if got := DTypeFor(vocab); got != want {
			t.Errorf("%d tokens are stored as %s, want %s", vocab, got, want)
		}
	}
	w := NewWriter(&bytes.Buffer{}, &bytes.Buffer{}, Uint16)
	for _, id := range []int32{-1, 65536} {
		if err := w.Append([]int32{id}, 1); err == nil {
			t.Errorf("token %d fits into uint16", id)
		}
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	dir, sm := writeSplit(t, "val", Uint16, []int32{1, 2}, []int32{3})
	meta := Meta{TokenDType: Uint16, Splits: map[string]SplitMeta{"val": sm}}
	bin, idx := filepath.Join(dir, "val.bin"), filepath.Join(dir, "val.idx")
	goodBin, _ := os.ReadFile(bin)
	goodIdx, _ := os.ReadFile(idx)
	edit := func(b []byte, at int, v byte) []byte { b = slices.Clone(b); b[at] = v; return b }
	for _, tt := range []struct {
		name     string
		bin, idx []byte
		want     string
	}{
		{"half a token", goodBin[:5], goodIdx, "5 bytes"},
		{"fewer tokens than meta.json says", goodBin[:4], goodIdx, "2 tokens"},
		{"no index entries", goodBin, nil, "0 bytes"},
		{"half an entry", goodBin, goodIdx[:20], "20 bytes"},
		{"first document not at 0", goodBin, edit(goodIdx, 0, 1), "token 1"},
		{"documents that go back", goodBin, edit(goodIdx, 16, 9), "before it begins"},
		{"huge position", goodBin, edit(goodIdx, 23, 0xff), "before it begins"},
		{"index of another file", goodBin, edit(goodIdx, 32, 4), "another file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := errors.Join(os.WriteFile(bin, tt.bin, 0o644), os.WriteFile(idx, tt.idx, 0o644)); err != nil {
				t.Fatal(err)
			}
			_, _, err := meta.OpenSplit(dir, "val")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want the path and %q", err, tt.want)
			}
		})
	}
	if _, _, err := meta.OpenSplit(dir, "test"); err == nil {
		t.Error("a split that is not in meta.json opens")
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add(make([]byte, 16), int64(0))
	f.Add(append(make([]byte, 16), 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0), int64(3))
	f.Fuzz(func(t *testing.T, raw []byte, tokens int64) {
		x, err := parseIndex(raw, tokens)
		if err != nil {
			return
		}
		var sum int64
		for i := range x.Len() {
			from, to := x.Tokens(i)
			if from != sum || to <= from || x.Document(from) != i || x.Document(to-1) != i || x.Bytes(i) < 0 {
				t.Fatalf("document %d is tokens %d to %d", i, from, to)
			}
			sum = to
		}
		if sum != tokens {
			t.Fatalf("documents end at %d of %d", sum, tokens)
		}
	})
}

func TestReadMeta(t *testing.T) {
	good := Meta{VocabSize: 300, Tokenizer: "bpe", TokenDType: Uint16, Format: FormatText, EndOfText: 299}
	dir := t.TempDir()
	if _, err := ReadMeta(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, tt := range []struct {
		name string
		edit func(*Meta)
		want string
	}{
		{"good", func(*Meta) {}, ""},
		{"type", func(m *Meta) { m.TokenDType = "int8" }, `"int8"`},
		{"vocabulary", func(m *Meta) { m.VocabSize = 0 }, "vocab_size is 0"},
		{"format", func(m *Meta) { m.Format = "csv" }, `"csv"`},
		{"end of text", func(m *Meta) { m.EndOfText = 300 }, "token 300"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := good
			tt.edit(&m)
			raw, _ := json.Marshal(m)
			if err := os.WriteFile(filepath.Join(dir, MetaFile), raw, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := ReadMeta(dir)
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrMeta) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
