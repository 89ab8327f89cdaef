package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
)

// tokenizer loads the tokenizer that was asked for or learns one from the train
// split, and no other.
func (p *preparing) tokenizer(ctx context.Context) (*bpe.Tokenizer, error) {
	t := &p.report.Data.Tokenizer
	if path := p.opts.Tokenizer; path != "" {
		tok, err := bpe.Load(path)
		if err != nil {
			return nil, err
		}
		if _, ok := tok.EndOfText(); !ok {
			return nil, fmt.Errorf("%s: the vocabulary has no %s to end documents with: use a tokenizer that has one", path, bpe.EndOfText)
		}
		t.VocabSize, t.SHA256 = tok.VocabSize(), tok.Digest()
		return tok, nil
	}
	p.opts.Logf("prepare: learning %d tokens from %d train documents", p.opts.VocabSize, p.spools[corpus.Train].docs)
	tok, err := bpe.Train(ctx, p.spools[corpus.Train].all, bpe.TrainOptions{
		VocabSize: p.opts.VocabSize, MinFrequency: p.opts.MinFrequency,
		SpecialTokens: []string{bpe.EndOfText}, Threads: p.opts.Workers,
	})
	if err != nil {
		return nil, err
	}
	t.Learnt, t.VocabWanted = true, p.opts.VocabSize
	t.VocabSize, t.SHA256 = tok.VocabSize(), tok.Digest()
	return tok, nil
}

// encoded is the tokens of a chunk.
type encoded struct {
	*chunk
	tokens []int32
	ends   []int // in tokens
}

// encoder turns chunks into tokens; it keeps no state.
type encoder struct {
	tok *bpe.Tokenizer
	eot int32
	qa  bool
}

func (e encoder) encode(c *chunk) (encoded, error) {
	out := encoded{chunk: c, tokens: make([]int32, 0, len(c.text)/2+len(c.docs)), ends: make([]int, len(c.docs))}
	for i := range c.docs {
		text := c.doc(i).Text
		if e.qa {
			// The prompt ends where a token ends: asked the question alone, the
			// model sees the tokens that it was trained on.
			_, prompt, err := corpus.ParseQA(text)
			if err != nil {
				return out, err
			}
			out.tokens = e.tok.AppendEncode(out.tokens, text[:prompt])
			text = text[prompt:]
		}
		out.tokens = append(e.tok.AppendEncode(out.tokens, text), e.eot)
		out.ends[i] = len(out.tokens)
	}
	return out, nil
}

// encode writes the tokens of all splits and looks for documents that are in two
// of them: at what is written, not at what was meant to be.
func (p *preparing) encode(ctx context.Context, tok *bpe.Tokenizer) error {
	var near *corpus.NearOptions
	if p.checksNear() {
		near = &p.opts.Near
	}
	p.leaks = corpus.NewLeakCheck(near)
	eot, _ := tok.EndOfText()
	enc := encoder{tok: tok, eot: eot, qa: p.opts.Format == dataset.FormatQA}
	p.report.Meta = newMeta(p.report.Data, p.opts, tok, eot)
	for _, s := range []corpus.Split{corpus.Val, corpus.Test, corpus.Train} {
		p.opts.Logf("prepare: encoding %d documents of %s", p.spools[s].docs, s)
		sm, err := p.encodeSplit(ctx, s, enc, p.report.Meta.TokenDType)
		if err != nil {
			return err
		}
		setSplit(&p.report.Meta, s, sm)
	}
	if train := p.report.Meta.TrainTokens; p.opts.BlockSize > 0 && p.opts.Format == dataset.FormatText && train <= int64(p.opts.BlockSize) {
		return dataset.TooSmall(filepath.Join(p.opts.RunDir, dataset.Bin("train")), train, p.opts.BlockSize)
	}
	p.report.finish(p)
	return atomicfile.WriteFile(filepath.Join(p.tmp, tokenizerFile), tok.SaveTokenizerJSON)
}

func (p *preparing) encodeSplit(ctx context.Context, s corpus.Split, enc encoder, dtype dataset.DType) (dataset.SplitMeta, error) {
	bin, err := newHashed(filepath.Join(p.tmp, dataset.Bin(s.String())))
	if err != nil {
		return dataset.SplitMeta{}, err
	}
	defer bin.file.Close()
	idx, err := newHashed(filepath.Join(p.tmp, dataset.Idx(s.String())))
	if err != nil {
		return dataset.SplitMeta{}, err
	}
	defer idx.file.Close()
	w := dataset.NewWriter(bin, idx, dtype)

	produce := func(_ context.Context, emit func(*chunk) error) error {
		c := newChunk()
		err := p.spools[s].each(func(d spooled) error {
			full := c.add(corpus.Document{Text: d.text})
			last := &c.docs[len(c.docs)-1]
			last.sum, last.sig = d.sum, d.sig
			if !full {
				return nil
			}
			done := c
			c = newChunk()
			return emit(done)
		})
		if err != nil || len(c.docs) == 0 {
			return err
		}
		return emit(c)
	}
	sink := func(e encoded) error {
		from := 0
		for i := range e.docs {
			p.leaks.Add(s, e.docs[i].sum, &e.docs[i].sig)
			if err := w.Append(e.tokens[from:e.ends[i]], len(e.doc(i).Text)); err != nil {
				return err
			}
			from = e.ends[i]
		}
		return nil
	}
	work := func(_ int, c *chunk) (encoded, error) { return enc.encode(c) }
	if err := corpus.Ordered(ctx, p.opts.Workers, produce, work, sink); err != nil {
		return dataset.SplitMeta{}, err
	}
	if err := w.Close(); err != nil {
		return dataset.SplitMeta{}, err
	}
	sm := w.Counts()
	if sm.SHA256, err = bin.finish(); err != nil {
		return sm, err
	}
	sm.IndexSHA256, err = idx.finish()
	return sm, err
}

// hashed is a file and the digest of what was written to it.
type hashed struct {
	io.Writer
	file *os.File
	hash hash.Hash
}

func newHashed(path string) (*hashed, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o664)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	return &hashed{Writer: io.MultiWriter(f, h), file: f, hash: h}, nil
}

// finish flushes the file to disk, gives its group the right to replace it, and
// returns its digest.
func (h *hashed) finish() (string, error) {
	if err := h.file.Chmod(0o664); err != nil {
		return "", err
	}
	if err := h.file.Sync(); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.hash.Sum(nil)), h.file.Close()
}
