package stage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/rng"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// Names of the splits that training reads.
const (
	trainSplit = "train"
	valSplit   = "val"
)

// trainData is the data of a run directory, opened for training.
type trainData struct {
	dir       string
	meta      dataset.Meta
	tok       *bpe.Tokenizer
	tokenizer []byte // the file, which goes into every checkpoint
	files     []*dataset.File
	digests   []train.Fact
	warnings  []string

	feed       dataset.Feed
	held       train.Evaluation
	length     int   // tokens of a row of a batch
	epochToken int64 // input tokens of one pass over the train split
}

// openTrainData reads the description and the tokenizer and checks the files
// against their recorded digests.
func openTrainData(dir string) (*trainData, error) {
	d := &trainData{dir: dir}
	var err error
	if d.meta, err = dataset.ReadMeta(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, exitcode.Errorf(exitcode.BadInput, "%w", err)
		}
		return nil, err
	}
	path := filepath.Join(dir, tokenizerFile)
	if d.tokenizer, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: run prepare first", err)
	}
	if d.tok, err = bpe.Parse(d.tokenizer); err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", path, err)
	}
	if v := d.tok.VocabSize(); v != d.meta.VocabSize {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s has %d tokens, %s says %d: the files are of two runs", path, v, dataset.MetaFile, d.meta.VocabSize)
	}
	recorded := map[string]string{
		tokenizerFile:           d.meta.TokenizerSHA256,
		dataset.Bin(trainSplit): d.meta.Splits[trainSplit].SHA256,
		dataset.Bin(valSplit):   d.meta.Splits[valSplit].SHA256,
	}
	for _, name := range []string{tokenizerFile, dataset.Bin(trainSplit), dataset.Bin(valSplit)} {
		sum, err := train.FileDigest(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name == dataset.Bin(valSplit) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("data set: %w", err)
		}
		if want := recorded[name]; want != "" && sum != "sha256:"+want {
			return nil, exitcode.Errorf(exitcode.Integrity, "%s is %s, %s says sha256:%s: prepare the data again", filepath.Join(dir, name), sum, dataset.MetaFile, want)
		}
		d.digests = append(d.digests, train.NewFact(name, sum))
	}
	return d, nil
}

// build makes the feed and the evaluation.
func (d *trainData) build(cfg train.Config, evalBatches int) error {
	src, index, err := d.open(trainSplit)
	if err != nil {
		return err
	}
	heldOut := valSplit
	if m, ok := d.meta.Splits[valSplit]; !ok || m.Tokens == 0 {
		// A loss is better than none, but it must not pass for a held-out one.
		d.warnings = append(d.warnings, fmt.Sprintf("%s has no val split: evaluations are on the train split", d.dir))
		heldOut = trainSplit
	}
	heldSrc, heldIndex, err := d.open(heldOut)
	if err != nil {
		return err
	}
	stream := rng.New(cfg.Seed, rng.Data)
	if d.meta.Format != dataset.FormatQA {
		feed, err := dataset.NewBatches(src, filepath.Join(d.dir, dataset.Bin(trainSplit)), cfg.BatchSize, cfg.BlockSize, stream)
		if err != nil {
			return exitcode.Errorf(exitcode.BadInput, "%w", err)
		}
		windows, err := dataset.NewTextWindows(heldSrc, filepath.Join(d.dir, dataset.Bin(heldOut)), cfg.BlockSize, d.meta.EndOfText)
		if err != nil {
			return exitcode.Errorf(exitcode.BadInput, "%w", err)
		}
		d.feed, d.length, d.epochToken = feed, cfg.BlockSize, src.Len()
		d.held = train.NewHeldOut(windows, cfg.BatchSize, evalBatches, cfg.Seed)
		return nil
	}
	pairs, err := d.pairs(src, index, trainSplit, cfg.BlockSize)
	if err != nil {
		return err
	}
	heldPairs, err := d.pairs(heldSrc, heldIndex, heldOut, cfg.BlockSize)
	if err != nil {
		return err
	}
	feed, err := pairs.Batches(cfg.BatchSize, stream)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "%w", err)
	}
	d.feed, d.length = feed, max(pairs.T(), heldPairs.T())
	d.epochToken = int64(pairs.Len()) * int64(pairs.T())
	d.held = train.NewHeldOut(heldPairs, cfg.BatchSize, evalBatches, cfg.Seed)
	return nil
}

func (d *trainData) pairs(src dataset.Source, x dataset.Index, split string, block int) (*dataset.QA, error) {
	q, err := dataset.NewQA(src, x, filepath.Join(d.dir, dataset.Bin(split)), dataset.QAOptions{
		Block: block, IsSeparator: isSeparator(d.tok), EndOfText: d.meta.EndOfText,
	})
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%w", err)
	}
	if n := q.Truncated(); n > 0 {
		d.warnings = append(d.warnings, fmt.Sprintf("%d of %d question-answer pairs of %s are longer than block %d and were cut", n, q.Len(), split, block))
	}
	return q, nil
}

// isSeparator finds the tokens that hold the bar.
func isSeparator(tok *bpe.Tokenizer) func(int32) bool {
	return func(id int32) bool {
		b, ok := tok.Token(id)
		return ok && bytes.Contains(b, []byte("|")) && !strings.HasPrefix(string(b), "<|")
	}
}

func (d *trainData) open(split string) (*dataset.File, dataset.Index, error) {
	f, x, err := d.meta.OpenSplit(d.dir, split)
	if err != nil {
		return nil, x, exitcode.Errorf(exitcode.BadInput, "%w", err)
	}
	d.files = append(d.files, f)
	return f, x, nil
}

func (d *trainData) close() {
	if d == nil {
		return
	}
	for _, f := range d.files {
		_ = f.Close() // opened for reading: nothing is lost
	}
}
