package corpus

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

// tree writes files below a new directory called corpus.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "corpus")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readAll(t *testing.T, opts ReaderOptions, paths ...string) ([]string, *Reader, error) {
	t.Helper()
	files, err := Files(paths)
	if err != nil {
		return nil, nil, err
	}
	if opts.Separator == (Separator{}) {
		opts.Separator = mustSeparator(t, DefaultSeparator)
	}
	r := NewReader(t.Context(), files, opts)
	defer r.Close()
	var docs []string
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			return docs, r, nil
		}
		if err != nil {
			return docs, r, err
		}
		docs = append(docs, d.File+": "+string(d.Text))
	}
}

func TestReaderWalksDirectoriesInOrder(t *testing.T) {
	dir := tree(t, map[string]string{
		"b.txt":          "b1\n\n\nb2",
		"a/z.txt":        "az",
		"a-c.txt":        "ac",
		"c.jsonl":        `{"text":"c1"}` + "\n" + `{"text":"c2"}` + "\n",
		"d.jsonl.gz":     gzipped(t, `{"text":"d1"}`),
		"e.txt.zst":      zstded(t, "e1\n\n\ne2"),
		".hidden":        "no",
		".git/HEAD":      "no",
		"a/.swp/file":    "no",
		"empty/none.txt": "",
	})
	got, r, err := readAll(t, ReaderOptions{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"corpus/a-c.txt: ac", "corpus/a/z.txt: az", "corpus/b.txt: b1", "corpus/b.txt: b2",
		"corpus/c.jsonl: c1", "corpus/c.jsonl: c2", "corpus/d.jsonl.gz: d1", "corpus/e.txt.zst: e1", "corpus/e.txt.zst: e2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("documents %q, want %q", got, want)
	}
	if s := r.Stats(); s.Documents != int64(len(want)) || s.Bytes != 18 {
		t.Errorf("stats %+v", s)
	}
	if n := len(r.Sums()); n != 7 {
		t.Errorf("%d files have a digest, want 7", n)
	}
	for _, sum := range r.Sums() {
		stored, err := os.ReadFile(filepath.Join(filepath.Dir(dir), filepath.FromSlash(sum.Name)))
		if err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(stored)
		if sum.SHA256 != hex.EncodeToString(want[:]) || sum.Size != int64(len(stored)) {
			t.Errorf("%s: size %d and digest %s are not those of the stored file", sum.Name, sum.Size, sum.SHA256)
		}
	}
}

// The digest of a corpus is what `sha256sum FILES | sha256sum` prints.
func TestDigestIsThatOfSha256sum(t *testing.T) {
	sums := []Sum{
		{Name: "a", SHA256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
		{Name: "b", SHA256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"},
	}
	// printf a > a; printf b > b; sha256sum a b | sha256sum
	const want = "cb13f400dcb618e400d0f7d54f7cdb330d37a07272cb99a1016cda5830a10556"
	if got := Digest(sums); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestReaderErrorsNameFileAndValue(t *testing.T) {
	whole := gzipped(t, strings.Repeat("text ", 10000))
	for _, tt := range []struct{ name, file, text, want string }{
		{"truncated gzip", "a.txt.gz", whole[:len(whole)-6], "a.txt.gz"},
		{"not gzip", "a.gz", "plain", "not gzip"},
		{"not zstd", "a.zst", "plain text", "a.zst"},
		{"not JSON", "a.jsonl", "{\"text\":\"x\"}\nnope\n", "record 2"},
		{"JSON array", "a.jsonl", "[1]\n", "record 1"},
		{"no such field", "a.jsonl", "{\"body\":\"x\"}\n", `"text"`},
		{"field of another type", "a.jsonl", "{\"text\":7}\n", "not a string"},
		{"field is null", "a.jsonl", "{\"text\":null}\n", "not a string"},
		{"half a line", "a.jsonl", "{\"text\":\"x\"}\n{\"te", "record 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, map[string]string{tt.file: tt.text})
			_, _, err := readAll(t, ReaderOptions{}, dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.file) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q and %q", err, tt.file, tt.want)
			}
		})
	}
	if _, err := Files([]string{filepath.Join(t.TempDir(), "gone")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	empty := t.TempDir()
	if _, err := Files([]string{empty}); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("empty directory: %v", err)
	}
}

func TestReaderMustEnd(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "q | a<|endoftext|>\nq | b\n"})
	docs, _, err := readAll(t, ReaderOptions{Separator: QASeparator(), MustEnd: true}, dir)
	if len(docs) != 1 || err == nil || !strings.Contains(err.Error(), "a.txt") || !strings.Contains(err.Error(), EndOfText) {
		t.Errorf("documents %q, error %v", docs, err)
	}
}

func TestReaderStopsWhenCancelled(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "a\n\n\nb"})
	files, err := Files([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	r := NewReader(ctx, files, ReaderOptions{Separator: mustSeparator(t, DefaultSeparator)})
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	cancel(stop)
	if _, err := r.Next(); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
}

func TestReaderLimit(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "12345\n\n\n12345\n\n\n12345"})
	docs, _, err := readAll(t, ReaderOptions{Limit: 6}, dir)
	if err != nil || len(docs) != 2 {
		t.Errorf("%q, %v: want the document that reaches the limit and no more", docs, err)
	}
}

func TestJSONReaderSkipsEndlessLines(t *testing.T) {
	long := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	blank := strings.Repeat(" ", 900)
	text := `{"text":"a"}` + "\n" + long + "\n" + `{"text":"b"}` + "\n" + blank + "\n" + `{"text":"c"}` + "\n" + long + "\n"
	j := newJSONReader(strings.NewReader(text), "text", 64)
	var got []string
	for {
		doc, err := j.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(doc))
	}
	if !slices.Equal(got, []string{"a", "b", "c"}) || j.tooLong != 2 {
		t.Errorf("%q, %d too long: want a, b and c, and 2 too long", got, j.tooLong)
	}
}

// What json.Marshal writes comes out as it went in, cut to the limit.
func FuzzJSONL(f *testing.F) {
	f.Add([]byte("{\"text\":\"a\"}\n{\"text\":\"\\u00e9\"}\n"), "text")
	f.Add([]byte("{\"text\":\"a\"}\r\n\r\n{}"), "text")
	f.Add([]byte("{\"text\":\"\\ud800\"}"), "x")
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		j := newJSONReader(bytes.NewReader(raw), "text", 256)
		for {
			doc, err := j.Next()
			if err != nil {
				break
			}
			if len(doc) > 256 || len(doc) == 0 {
				t.Fatalf("document of %d bytes", len(doc))
			}
		}
		line, err := json.Marshal(map[string]string{"text": text, "other": "x"})
		if err != nil {
			t.Fatal(err)
		}
		j = newJSONReader(bytes.NewReader(append(line, '\n')), "text", 1<<20)
		doc, err := j.Next()
		if want := strings.ToValidUTF8(text, ""); strings.TrimSpace(want) != "" && want == text && (err != nil || string(doc) != text) {
			t.Errorf("%q came out as %q, %v", text, doc, err)
		}
	})
}
