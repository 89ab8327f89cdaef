package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/quality"
)

// A chunk is large enough that handing it over costs nothing beside the work on
// it; one document more may make it as long as that is.
const (
	chunkBytes = 256 << 10
	chunkDocs  = 2048
)

// chunk is documents in one buffer.
type chunk struct {
	text []byte
	docs []chunkDoc
}

type chunkDoc struct {
	end    int // in text
	file   string
	number int64
	sum    corpus.Sum256 // this and what follows are known from a spool only
	sig    corpus.Signature
}

func newChunk() *chunk { return &chunk{text: make([]byte, 0, chunkBytes+chunkBytes/4)} }

func (c *chunk) add(d corpus.Document) (full bool) {
	c.text = append(c.text, d.Text...)
	c.docs = append(c.docs, chunkDoc{end: len(c.text), file: d.File, number: d.Number})
	return len(c.text) >= chunkBytes || len(c.docs) >= chunkDocs
}

func (c *chunk) doc(i int) corpus.Document {
	from := 0
	if i > 0 {
		from = c.docs[i-1].end
	}
	d := c.docs[i]
	return corpus.Document{Text: c.text[from:d.end], File: d.file, Number: d.number}
}

// judged is a chunk and what a worker found out about each document.
type judged struct {
	*chunk
	clean    []byte
	verdicts []verdict
}

type verdict struct {
	end       int // in clean
	fate      corpus.Fate
	chars     int
	raw, kept quality.Flags
	sum       corpus.Sum256
	sig       corpus.Signature
}

// reader is what one worker needs.
type reader struct {
	opts    PrepareOptions
	clean   *corpus.Cleaner
	measure corpus.Measurer
	hash    corpus.Hasher
	min     *corpus.MinHasher // nil where near duplicates are not looked for
}

func (r *reader) judge(c *chunk) (judged, error) {
	j := judged{chunk: c, clean: make([]byte, 0, len(c.text)), verdicts: make([]verdict, len(c.docs))}
	for i := range c.docs {
		d, v := c.doc(i), &j.verdicts[i]
		m := r.measure.Measure(d.Text)
		v.raw = r.opts.Quality.Detect(d.Text, m)
		text := r.clean.Clean(d.Text)
		if r.opts.Format == dataset.FormatQA {
			var err error
			if text, _, err = corpus.ParseQA(trimEnd(text)); err != nil {
				return j, fmt.Errorf("%s: record %d: %w", d.File, d.Number, err)
			}
		}
		v.kept = v.raw
		if string(text) != string(d.Text) {
			m = r.measure.Measure(text)
			v.kept = r.opts.Quality.Detect(text, m)
		}
		v.chars = m.Chars
		if v.fate = r.opts.Filter.Judge(m); v.fate == corpus.Kept {
			v.sum = r.hash.Sum(text)
			if r.min != nil {
				v.sig = r.min.Sign(text)
			}
			j.clean = append(j.clean, text...)
		}
		v.end = len(j.clean)
	}
	return j, nil
}

// trimEnd takes the end of a record off, which a record in a .jsonl may have.
func trimEnd(text []byte) []byte {
	return []byte(strings.TrimSuffix(strings.TrimSpace(string(text)), corpus.EndOfText))
}

// read reads the corpus, drops what is unfit and puts the rest into the spools of
// the splits.
func (p *preparing) read(ctx context.Context) error {
	p.opts.Logf("prepare: reading %d files", len(p.files))
	for s := range p.spools {
		var err error
		if p.spools[s], err = newSpool(filepath.Join(p.tmp, corpus.Split(s).String()+".spool")); err != nil {
			return err
		}
	}
	workers := make([]*reader, p.opts.Workers)
	for i := range workers {
		workers[i] = &reader{opts: p.opts, clean: corpus.NewCleaner(p.opts.Clean)}
		if !p.opts.DropNear && !p.checksNear() {
			continue
		}
		var err error
		if workers[i].min, err = corpus.NewMinHasher(p.opts.Near.Shingle); err != nil {
			return err
		}
	}
	src := corpus.NewReader(ctx, p.files, p.readerOptions())
	k := newKeeper(p)
	err := corpus.Ordered(ctx, len(workers),
		func(_ context.Context, emit func(*chunk) error) error { defer src.Close(); return chunks(src, emit) },
		func(w int, c *chunk) (judged, error) { return workers[w].judge(c) },
		k.keep)
	if err != nil {
		return err
	}
	for _, w := range workers {
		k.data.Cleaning.Counts.Add(w.clean.Stats())
	}
	return k.finish(src)
}

// checksNear reports whether the check for leakage looks for near duplicates:
// questions resemble each other by nature.
func (p *preparing) checksNear() bool { return p.opts.Format == dataset.FormatText }

// chunks emits the documents of src.
func chunks(src *corpus.Reader, emit func(*chunk) error) error {
	c := newChunk()
	for {
		d, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if c.add(d) {
			if err := emit(c); err != nil {
				return err
			}
			c = newChunk()
		}
	}
	if len(c.docs) == 0 {
		return nil
	}
	return emit(c)
}
