package evaluate

import (
	"context"
	"fmt"
	"slices"
)

// Subject is a model that can be measured.
type Subject struct {
	Scorer    Scorer
	Tokenizer Tokenizer
	VocabSize int // of the model
	Rows      int // sequences in a batch
	Block     int // tokens in a sequence
}

// plan fits the rows to the documents: pairs apart are mostly far shorter than a
// block, and the rest of a row is work for nothing.
func (s Subject) plan(docs []Document, apart bool) Plan {
	p := Plan{Rows: s.Rows, Block: s.Block, First: EndOfText(s.Tokenizer), Bytes: TokenBytes(s.Tokenizer, s.VocabSize), Apart: apart}
	if apart {
		var longest int64 = 1
		for _, d := range docs {
			longest = max(longest, d.End-d.Start-1)
		}
		p.Block = int(min(int64(p.Block), longest))
	}
	return p
}

// Options of a measurement.
type Options struct {
	// Sample is how many documents to draw; 0 measures all.
	Sample int
	Seed   uint64
	// IsSeparator tells the token that ends the question of a question-answer
	// pair: pairs are then put apart and only answers count. Nil for text.
	IsSeparator func(int32) bool
	// SameTokenizer says that candidate and baseline share the tokens of the
	// data. Otherwise the baseline gets the same text in its own tokens.
	SameTokenizer bool
}

// Split measures the candidate on a split in the candidate's tokens and, unless
// base is nil, the baseline on the same documents, and compares the two. Name is
// for errors.
func Split(ctx context.Context, name string, s Tokens, docs []Document, cand Subject, base *Subject, o Options) (SplitReport, *BaselineSplit, error) {
	if s.Len() == 0 {
		return SplitReport{}, nil, fmt.Errorf("%w: split %s is empty: prepare more documents, or give it a larger share", ErrNothing, name)
	}
	rep, vs, err := split(ctx, s, docs, cand, base, o)
	if err != nil {
		return SplitReport{}, nil, fmt.Errorf("split %s: %w", name, err)
	}
	return rep, vs, nil
}

func split(ctx context.Context, s Tokens, docs []Document, cand Subject, base *Subject, o Options) (SplitReport, *BaselineSplit, error) {
	docs, rep, err := clusters(s, docs, cand, o)
	if err != nil {
		return SplitReport{}, nil, err
	}
	sums, err := Score(ctx, cand.Scorer, s, docs, cand.plan(docs, o.IsSeparator != nil))
	if err != nil {
		return SplitReport{}, nil, err
	}
	if err := rep.fill(sums); err != nil {
		return SplitReport{}, nil, err
	}
	if base == nil {
		return rep, nil, nil
	}
	unit := NatsPerToken
	if !o.SameTokenizer {
		unit = BitsPerByteU
		if s, docs, err = Retokenize(ctx, s, docs, cand.Tokenizer, base.Tokenizer); err != nil {
			return SplitReport{}, nil, fmt.Errorf("baseline's tokens: %w", err)
		}
	}
	baseSums, err := Score(ctx, base.Scorer, s, docs, base.plan(docs, o.IsSeparator != nil))
	if err != nil {
		return SplitReport{}, nil, fmt.Errorf("baseline: %w", err)
	}
	vs := &BaselineSplit{}
	if vs.Loss, err = LossPerToken(baseSums); err == nil {
		vs.BitsPerByte, err = BitsPerByte(baseSums)
	}
	if err != nil {
		return SplitReport{}, nil, fmt.Errorf("baseline: %w", err)
	}
	if vs.Difference, err = Compare(sums, baseSums, unit); err != nil {
		return SplitReport{}, nil, fmt.Errorf("candidate and baseline: %w", err)
	}
	return rep, vs, nil
}

// clusters finds the documents to measure and what to say about them.
func clusters(s Tokens, docs []Document, cand Subject, o Options) ([]Document, SplitReport, error) {
	rep := SplitReport{DocumentsInSplit: len(docs), Cluster: ByDocument}
	if o.IsSeparator != nil {
		docs = slices.Clone(docs)
		if err := CountAfter(s, docs, o.IsSeparator); err != nil {
			return nil, SplitReport{}, err
		}
	} else if len(docs) < 2 {
		docs, rep.Cluster = Windows(s.Len(), cand.Block), ByWindow
	}
	if o.Sample > 0 {
		var err error
		if docs, err = Sample(docs, o.Sample, o.Seed); err != nil {
			return nil, SplitReport{}, err
		}
	}
	rep.Clusters = len(docs)
	return docs, rep, nil
}
