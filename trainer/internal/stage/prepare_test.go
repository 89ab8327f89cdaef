package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// sentences makes n documents of random words, no two alike.
func sentences(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 1))
	syllables := strings.Fields("ka lo mi ne su ta ri po en ver shi ton gra ble mon cu ser vi do pan")
	docs := make([]string, n)
	for i := range docs {
		var b strings.Builder
		for w := range 40 {
			if w > 0 {
				b.WriteByte(" \n"[min(1, r.IntN(12)/11)])
			}
			for range 1 + r.IntN(3) {
				b.WriteString(syllables[r.IntN(len(syllables))])
			}
		}
		docs[i] = b.String()
	}
	return docs
}

// textFile writes documents to a file.
func textFile(t testing.TB, docs []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(path, []byte(strings.Join(docs, "\n\n\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallPrepare has the defaults, with a vocabulary for a small text.
func smallPrepare(t testing.TB, input string) PrepareOptions {
	o := DefaultPrepare()
	o.Inputs, o.RunDir, o.VocabSize = []string{input}, filepath.Join(t.TempDir(), "run"), 400
	return o
}

func mustPrepare(t testing.TB, o PrepareOptions) PrepareReport {
	t.Helper()
	r, err := Prepare(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents reads all files of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(raw)
	}
	return files
}

// splitDocs decodes the documents of a split.
func splitDocs(t testing.TB, dir, split string) []string {
	t.Helper()
	meta, err := dataset.ReadMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, x, err := meta.OpenSplit(dir, split)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	docs := make([]string, x.Len())
	for i := range docs {
		from, to := x.Tokens(i)
		ids := make([]int32, to-from)
		if err := f.Read(ids, from); err != nil {
			t.Fatal(err)
		}
		if last := ids[len(ids)-1]; last != meta.EndOfText {
			t.Fatalf("%s document %d ends with token %d", split, i, last)
		}
		docs[i] = string(tok.Decode(ids[:len(ids)-1]))
		if int64(len(docs[i])) != x.Bytes(i) {
			t.Errorf("%s document %d has %d bytes, the index says %d", split, i, len(docs[i]), x.Bytes(i))
		}
	}
	return docs
}

func TestPrepareWritesEveryDocumentOnce(t *testing.T) {
	docs := sentences(1, 300)
	o := smallPrepare(t, textFile(t, docs))
	r := mustPrepare(t, o)
	var got []string
	for _, s := range []string{"train", "val", "test"} {
		part := splitDocs(t, o.RunDir, s)
		if n := r.Meta.Splits[s].Documents; int(n) != len(part) {
			t.Errorf("%s: meta.json says %d documents, there are %d", s, n, len(part))
		}
		got = append(got, part...)
	}
	want := slices.Clone(docs)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d documents came out of %d, or other ones", len(got), len(want))
	}
	files := slices.Sorted(maps.Keys(contents(t, o.RunDir)))
	names := slices.Clone(r.Files)
	slices.Sort(names)
	if !slices.Equal(files, names) || r.Files[len(r.Files)-1] != dataset.MetaFile {
		t.Errorf("run directory holds %q, report names %q", files, r.Files)
	}
}

// The keys that others read, and the numbers in them.
func TestPrepareMeta(t *testing.T) {
	o := smallPrepare(t, textFile(t, sentences(1, 100)))
	mustPrepare(t, o)
	var m map[string]any
	if err := json.Unmarshal([]byte(contents(t, o.RunDir)[dataset.MetaFile]), &m); err != nil {
		t.Fatal(err)
	}
	chars, tokens := 0, 0
	for _, s := range []string{"train", "val", "test"} {
		for _, d := range splitDocs(t, o.RunDir, s) {
			chars += len(d)
		}
		tokens += int(m[s+"_tokens"].(float64))
	}
	for key, want := range map[string]any{
		"vocab_size": 400.0, "tokenizer": "bpe", "token_dtype": "uint16", "docs_in": 100.0, "docs_out": 100.0,
		"total_chars": float64(chars), "chars_per_token": float64(chars) / float64(tokens),
	} {
		if m[key] != want {
			t.Errorf("%s is %v, want %v", key, m[key], want)
		}
	}
}

func TestPrepareIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	docs := sentences(1, 2000)
	docs = append(docs, docs[:50]...)
	for i := range 50 {
		docs = append(docs, strings.Replace(docs[100+i], "a", "o", 2), "<p>"+docs[200+i]+"</p>\x00")
	}
	input := textFile(t, docs)
	var first map[string]string
	for _, workers := range []int{1, 1, 2, 3} {
		o := smallPrepare(t, input)
		o.Workers = workers
		mustPrepare(t, o)
		got := contents(t, o.RunDir)
		if first == nil {
			first = got
		}
		for name := range first {
			if got[name] != first[name] {
				t.Errorf("%d workers: %s differs", workers, name)
			}
		}
	}
}

func TestPrepareAddingDocumentsMovesNone(t *testing.T) {
	docs := sentences(1, 400)
	old := smallPrepare(t, textFile(t, docs))
	mustPrepare(t, old)
	// More documents, in front, between and behind.
	more := slices.Concat(sentences(2, 150), docs[:200], sentences(3, 150), docs[200:], sentences(4, 150))
	grown := smallPrepare(t, textFile(t, more))
	mustPrepare(t, grown)
	for _, s := range []string{"train", "val", "test"} {
		now := splitDocs(t, grown.RunDir, s)
		before := splitDocs(t, old.RunDir, s)
		for _, d := range before {
			if !slices.Contains(now, d) {
				t.Fatalf("a document left %s: %.40q", s, d)
			}
		}
		if len(now) <= len(before) {
			t.Errorf("%s did not grow", s)
		}
	}
}

// Held-out text has no say in the vocabulary: leaving it out changes nothing.
func TestPrepareLearnsTheVocabularyFromTrainOnly(t *testing.T) {
	all := smallPrepare(t, textFile(t, sentences(1, 400)))
	mustPrepare(t, all)
	train := smallPrepare(t, textFile(t, splitDocs(t, all.RunDir, "train")))
	train.Split = corpus.Fractions{Train: 1}
	mustPrepare(t, train)
	a, b := contents(t, all.RunDir), contents(t, train.RunDir)
	for _, name := range []string{"tokenizer.json", "train.bin", "train.idx"} {
		if a[name] != b[name] {
			t.Errorf("%s depends on the documents held out", name)
		}
	}
	if len(b["val.bin"]) != 0 || len(b["test.bin"]) != 0 {
		t.Error("a split without a share is not empty")
	}
}

// Thirteen in, eight out: three of low quality, one exact and one near duplicate.
func TestPrepareCountsWhatItDrops(t *testing.T) {
	docs := sentences(5, 8)
	docs = slices.Insert(docs, 1, "too short", "$$$ %%% !!! *** ### @@@ ((( ))) ???", strings.Repeat("again and ", 40))
	docs = append(docs, "  "+strings.ReplaceAll(docs[0], " ", "\n"), strings.Replace(docs[5], "ka", "ko", 1))
	o := smallPrepare(t, textFile(t, docs))
	o.Split = corpus.Fractions{Train: 1}
	r := mustPrepare(t, o)
	want := map[string]int64{"too_short": 1, "symbols": 1, "repetition": 1, "exact_duplicate": 1, "near_duplicate": 1}
	if r.Data.DocsIn != 13 || r.Data.DocsOut != 8 || !maps.Equal(r.Data.Dropped, want) {
		t.Errorf("%d in, %d out, dropped %v: want 13, 8, %v", r.Data.DocsIn, r.Data.DocsOut, r.Data.Dropped, want)
	}
	if q := r.Quality; q.RawDocuments != 13 || q.Documents != 8 || q.Detectors[6].RawFlagged != 2 {
		t.Errorf("quality of %d raw and %d kept documents, too_short %+v", q.RawDocuments, q.Documents, q.Detectors[6])
	}
}

func TestPrepareReportsLeakage(t *testing.T) {
	docs := sentences(6, 200)
	for i := range 200 {
		docs = append(docs, strings.Replace(docs[i], docs[i][:6], "changed ", 1))
	}
	o := smallPrepare(t, textFile(t, docs))
	if l := mustPrepare(t, o).Data.Leakage; l.Near.Total() != 0 || l.Exact.Total() != 0 {
		t.Errorf("without duplicates: %+v, near %+v", l, l.Near)
	}
	o.DropNear = false
	l := mustPrepare(t, o).Data.Leakage
	if l.Near.ValInTrain < 10 || l.Near.TestInTrain < 10 || l.Near.TestInVal < 1 || l.Exact.Total() != 0 {
		t.Errorf("with near duplicates: exact %+v, near %+v", l.Exact, *l.Near)
	}
	o.Memorize = true
	r := mustPrepare(t, o)
	if l := r.Data.Leakage.Exact; l.ValInTrain != 400 || l.TestInTrain != 400 || l.TestInVal != 400 {
		t.Errorf("with every document in every split: %+v", l)
	}
}

func TestPrepareTakesAnExistingTokenizer(t *testing.T) {
	input := textFile(t, sentences(1, 100))
	first := smallPrepare(t, input)
	r := mustPrepare(t, first)
	second := smallPrepare(t, input)
	second.Tokenizer, second.VocabSize = first.RunDir, 0
	r2 := mustPrepare(t, second)
	if r2.Meta.Splits["train"].SHA256 != r.Meta.Splits["train"].SHA256 || r2.Data.Tokenizer.Learnt || !r.Data.Tokenizer.Learnt {
		t.Errorf("tokenizer %+v, then %+v", r.Data.Tokenizer, r2.Data.Tokenizer)
	}
	plain, err := bpe.Train(t.Context(), func(yield func([]byte, error) bool) { yield([]byte("some text"), nil) }, bpe.TrainOptions{VocabSize: 258})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := plain.Save(dir); err != nil {
		t.Fatal(err)
	}
	second.Tokenizer = dir
	if _, err := Prepare(t.Context(), second); err == nil || !strings.Contains(err.Error(), bpe.EndOfText) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a tokenizer without end of text: %v", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	good := sentences(1, 60)
	for _, tt := range []struct {
		name string
		docs []string
		edit func(*PrepareOptions)
		code int
		want string
	}{
		{"empty corpus", []string{" \n "}, nil, exitcode.BadInput, "corpus.txt: the corpus is empty"},
		{"one document", good[:1], nil, exitcode.BadInput, "finds 1 document, keeps 1 (dropped: none)"},
		{"nothing is fit", []string{"a", "b"}, nil, exitcode.BadInput, "no document of 2 is left, dropped: too_short 2"},
		{"less than a block", good, func(o *PrepareOptions) { o.BlockSize = 1 << 20 }, exitcode.BadInput, "train.bin"},
		{"missing input", good, func(o *PrepareOptions) { o.Inputs = []string{"/nowhere/x"} }, exitcode.BadInput, "/nowhere/x"},
		{"missing tokenizer", good, func(o *PrepareOptions) { o.Tokenizer = "/nowhere/t" }, exitcode.BadInput, "/nowhere/t"},
		{"no input", good, func(o *PrepareOptions) { o.Inputs = nil }, exitcode.Usage, "no input"},
		{"no run directory", good, func(o *PrepareOptions) { o.RunDir = "" }, exitcode.Usage, "run directory"},
		{"separator", good, func(o *PrepareOptions) { o.Separator = "pages" }, exitcode.Usage, `"pages"`},
		{"separator of the table", good, func(o *PrepareOptions) { o.Sensitivity = []string{"x"} }, exitcode.Usage, `"x"`},
		{"format", good, func(o *PrepareOptions) { o.Format = "csv" }, exitcode.Usage, `"csv"`},
		{"vocabulary", good, func(o *PrepareOptions) { o.VocabSize = 256 }, exitcode.Usage, "256"},
		{"shares", good, func(o *PrepareOptions) { o.Split.Train = 0.9 }, exitcode.Usage, "1.1"},
		{"threshold", good, func(o *PrepareOptions) { o.Near.Threshold = 2 }, exitcode.Usage, "near-threshold is 2"},
		{"filter", good, func(o *PrepareOptions) { o.Filter.MinChars = -1 }, exitcode.Usage, "min-chars is -1"},
		{"detector", good, func(o *PrepareOptions) { delete(o.Quality.MaxPercent, "url") }, exitcode.Usage, "url"},
		{"longest document", good, func(o *PrepareOptions) { o.MaxDocBytes = 3 }, exitcode.Usage, "max-doc-bytes is 3"},
		{"records that are none", good, func(o *PrepareOptions) { o.Format = dataset.FormatQA }, exitcode.BadInput, "corpus.txt"},
		{"run directory is a file", good, func(o *PrepareOptions) { o.RunDir = filepath.Join(o.Inputs[0], "run") }, exitcode.Usage, "hold each other"},
		{"run directory in a file", good, func(o *PrepareOptions) { o.RunDir = "/dev/null/run" }, exitcode.IO, "/dev/null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := smallPrepare(t, textFile(t, tt.docs))
			dir := o.RunDir
			if tt.edit != nil {
				tt.edit(&o)
			}
			_, err := Prepare(t.Context(), o)
			var coded *exitcode.Error
			if !errors.As(err, &coded) || coded.Code != tt.code || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q and code %d", err, tt.want, tt.code)
			}
			if files := contents(t, dir); len(files) > 0 {
				t.Errorf("left behind: %q", slices.Collect(maps.Keys(files)))
			}
		})
	}
}

// Whenever prepare fails, what an earlier one wrote is still there.
func TestPrepareLeavesTheRunDirectoryWhenItFails(t *testing.T) {
	o := smallPrepare(t, textFile(t, sentences(1, 100)))
	mustPrepare(t, o)
	before := contents(t, o.RunDir)
	o.Inputs = []string{textFile(t, sentences(2, 3000))}
	stop := errors.New("stopped by hand")
	steps := 0
	for n := 1; n == 1 || n <= steps; n++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		steps = 0
		o.Logf = func(string, ...any) {
			if steps++; steps == n {
				cancel(stop)
			}
		}
		if _, err := Prepare(ctx, o); !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at step %d: %v", n, err)
		}
		if after := contents(t, o.RunDir); !maps.Equal(after, before) {
			t.Errorf("stopped at step %d, the run directory changed", n)
		}
		steps = 6
	}
	o.Logf = nil
	mustPrepare(t, o)
	if maps.Equal(contents(t, o.RunDir), before) {
		t.Error("a prepare that succeeds changes nothing: the test shows nothing")
	}
}

func TestPrepareReplacesInvalidUTF8(t *testing.T) {
	docs := sentences(1, 60)
	docs[3] = docs[3][:50] + "\xff\xfe" + docs[3][50:] + "\xe6\x97"
	o := smallPrepare(t, textFile(t, docs))
	r := mustPrepare(t, o)
	if n := r.Data.Cleaning.Counts.InvalidRuns; n != 2 {
		t.Errorf("%d runs of invalid bytes, want 2", n)
	}
	all := strings.Join(slices.Concat(splitDocs(t, o.RunDir, "train"), splitDocs(t, o.RunDir, "val"), splitDocs(t, o.RunDir, "test")), "")
	if strings.Count(all, "\uFFFD") != 2 {
		t.Errorf("%d replacements, want 2", strings.Count(all, "\uFFFD"))
	}
}

func TestPrepareQuestionsAndAnswers(t *testing.T) {
	var records strings.Builder
	for i := range 40 {
		fmt.Fprintf(&records, "What is number %d? |  It is %d, or (%d). <|endoftext|>\n", i, i, i)
	}
	path := filepath.Join(t.TempDir(), "facts.txt")
	if err := os.WriteFile(path, []byte(records.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	o := DefaultPrepareQA()
	o.Inputs, o.RunDir, o.VocabSize = []string{path}, filepath.Join(t.TempDir(), "run"), 300
	o.Split = corpus.Fractions{Train: 1}
	r := mustPrepare(t, o)
	if !r.Quality.Gate || r.Meta.Format != dataset.FormatQA || r.Data.DocsOut != 40 {
		t.Errorf("gate %v, format %s, %d documents", r.Quality.Gate, r.Meta.Format, r.Data.DocsOut)
	}
	if got := splitDocs(t, o.RunDir, "train")[7]; got != "What is number 7? | It is 7, or (7)." {
		t.Errorf("record 7 is %q", got)
	}
	tok, err := bpe.Load(o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	f, x, err := r.Meta.OpenSplit(o.RunDir, "train")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bar := func(id int32) bool { return bytes.IndexByte(tok.Decode([]int32{id}), '|') >= 0 }
	q, err := dataset.NewQA(f, x, "train.bin", dataset.QAOptions{Block: 64, EndOfText: r.Meta.EndOfText, IsSeparator: bar})
	if err != nil || q.Len() != 40 {
		t.Fatalf("%d pairs, %v", q.Len(), err)
	}
	// Asked the question alone, a model sees the tokens of the prompt.
	from, to := x.Tokens(7)
	ids := make([]int32, to-from)
	if err := f.Read(ids, from); err != nil {
		t.Fatal(err)
	}
	prompt := tok.Encode("What is number 7? |")
	if !slices.Equal(ids[:len(prompt)], prompt) {
		t.Errorf("the record begins %v, the prompt is %v", ids[:len(prompt)], prompt)
	}
	if err := os.WriteFile(path, []byte(records.String()+"Unfinished? | Yes"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "facts.txt") || !strings.Contains(err.Error(), "Unfinished?") {
		t.Errorf("an unfinished record: %v", err)
	}
}

func TestPrepareRefusesToReadItsOwnOutput(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []PrepareOptions{
		{Inputs: []string{dir}, RunDir: filepath.Join(dir, "run")},
		{Inputs: []string{filepath.Join(dir, "run", "x.txt")}, RunDir: filepath.Join(dir, "run")},
	} {
		if _, err := Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "hold each other") {
			t.Errorf("input %s, run directory %s: %v", o.Inputs[0], o.RunDir, err)
		}
	}
}
