package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/quality"
)

// DataReport is data_report.json: what went in, what came out and why the rest
// did not.
type DataReport struct {
	DocsIn    int64            `json:"docs_in"`
	DocsOut   int64            `json:"docs_out"`
	BytesIn   int64            `json:"bytes_in"`
	BytesOut  int64            `json:"bytes_out"`
	CharsOut  int64            `json:"chars_out"`
	Dropped   map[string]int64 `json:"dropped"` // documents by reason
	Format    string           `json:"format"`
	Separator string           `json:"separator"`

	MaxDocBytes    int   `json:"max_doc_bytes"`
	CutDocuments   int64 `json:"cut_documents"`   // cuts in documents longer than that; what follows is a document of its own
	SkippedRecords int64 `json:"skipped_records"` // lines of .jsonl more than four times as long

	Cleaning  CleaningReport       `json:"cleaning"`
	Filter    corpus.FilterOptions `json:"filter"`
	Exact     ExactReport          `json:"exact_duplicates"`
	Near      NearReport           `json:"near_duplicates"`
	Splits    SplitsReport         `json:"splits"`
	Leakage   LeakageReport        `json:"leakage"`
	Tokenizer TokenizerReport      `json:"tokenizer"`

	CorpusSHA256 string       `json:"corpus_sha256"` // of the lines "sha256  name" of the sources
	Sources      []corpus.Sum `json:"sources"`
}

// CleaningReport says what cleaning was to do and what it did.
type CleaningReport struct {
	Options corpus.CleanOptions `json:"options"`
	Counts  corpus.CleanStats   `json:"counts"` // over the documents read
}

// ExactReport says how exact duplicates were found.
type ExactReport struct {
	Dropped           bool    `json:"dropped"`
	Method            string  `json:"method"`
	FalsePositiveOdds float64 `json:"false_positive_odds"` // that any document was dropped in error
}

// NearReport says how near duplicates were found.
type NearReport struct {
	Dropped      bool   `json:"dropped"`
	Method       string `json:"method"`
	Permutations int    `json:"permutations"`
	Bands        int    `json:"bands"`
	corpus.NearOptions
	Forgotten int64 `json:"forgotten_documents"` // fell out of the window
}

// SplitsReport says how documents were assigned and how they fell.
type SplitsReport struct {
	Method    string                       `json:"method"`
	Fractions corpus.Fractions             `json:"fractions"`
	Seed      uint64                       `json:"seed"`
	Memorize  bool                         `json:"memorize"` // every document is in every split
	Counts    map[string]dataset.SplitMeta `json:"counts"`
	Percent   map[string]float64           `json:"percent"` // of the documents kept
}

// LeakageReport counts held-out documents found in another split.
type LeakageReport struct {
	Exact     corpus.Leaks  `json:"exact"`
	Near      *corpus.Leaks `json:"near"`      // null where it was not looked for
	Unchecked int64         `json:"unchecked"` // held-out documents beyond the window of near duplicates
}

// TokenizerReport says where the tokenizer came from.
type TokenizerReport struct {
	Learnt      bool   `json:"learnt"` // from the train split; else it was given
	VocabWanted int    `json:"vocab_wanted,omitempty"`
	VocabSize   int    `json:"vocab_size"`
	SHA256      string `json:"sha256"` // of tokenizer.json
}

func newDataReport(o PrepareOptions, sep corpus.Separator) DataReport {
	return DataReport{
		Dropped: map[string]int64{}, Format: o.Format, Separator: sep.String(), MaxDocBytes: o.MaxDocBytes,
		Cleaning: CleaningReport{Options: o.Clean}, Filter: o.Filter,
		Exact: ExactReport{Dropped: o.DropExact, Method: "sha256 of the text with white space folded, 64 bits kept"},
		Near: NearReport{
			Dropped: o.DropNear, Method: "minhash, one permutation in 64 bins, 8 bits each, banded",
			Permutations: corpus.Permutations, Bands: corpus.Bands, NearOptions: o.Near,
		},
		Splits: SplitsReport{
			Method: "sha256 of the text with white space folded", Fractions: o.Split, Seed: o.SplitSeed, Memorize: o.Memorize,
			Percent: map[string]float64{},
		},
	}
}

func newMeta(d DataReport, o PrepareOptions, tok *bpe.Tokenizer, eot int32) dataset.Meta {
	return dataset.Meta{
		VocabSize: tok.VocabSize(), Tokenizer: "bpe", TokenDType: dataset.DTypeFor(tok.VocabSize()),
		DocsIn: d.DocsIn, DocsOut: d.DocsOut, TotalChars: d.CharsOut,
		Format: o.Format, Separator: d.Separator, SplitSeed: o.SplitSeed, EndOfText: eot,
		CorpusSHA256: d.CorpusSHA256, TokenizerSHA256: d.Tokenizer.SHA256,
		Splits: map[string]dataset.SplitMeta{},
	}
}

func setSplit(m *dataset.Meta, s corpus.Split, sm dataset.SplitMeta) {
	m.Splits[s.String()] = sm
	*map[corpus.Split]*int64{corpus.Train: &m.TrainTokens, corpus.Val: &m.ValTokens, corpus.Test: &m.TestTokens}[s] = sm.Tokens
}

// finish fills in what is known when all is encoded.
func (r *PrepareReport) finish(p *preparing) {
	m, d := &r.Meta, &r.Data
	d.Splits.Counts = m.Splits
	for name, sm := range m.Splits {
		d.Splits.Percent[name] = quality.Percent(sm.Documents, d.DocsOut)
	}
	tokens := m.TrainTokens + m.ValTokens + m.TestTokens
	chars := m.TotalChars
	if p.opts.Memorize {
		chars *= int64(corpus.Splits)
	}
	m.CharsPerToken = float64(chars) / float64(tokens)
	exact, near := p.leaks.Leaks()
	d.Leakage = LeakageReport{Exact: exact, Unchecked: p.leaks.Unchecked()}
	if p.checksNear() {
		d.Leakage.Near = &near
	}
}

// write puts the reports beside the files of tokens and moves everything to the
// run directory.
func (p *preparing) write(ctx context.Context) error {
	r := &p.report
	for _, f := range []struct {
		name  string
		value any
	}{{DataReportFile, r.Data}, {QualityReportFile, r.Quality}, {dataset.MetaFile, r.Meta}} {
		if err := atomicfile.WriteJSON(filepath.Join(p.tmp, f.name), f.value); err != nil {
			return err
		}
	}
	for s := corpus.Train; s < corpus.Splits; s++ {
		r.Files = append(r.Files, dataset.Bin(s.String()), dataset.Idx(s.String()))
	}
	r.Files = append(r.Files, tokenizerFile, DataReportFile, QualityReportFile, dataset.MetaFile)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx) // the last moment at which nothing has changed
	}
	if err := os.Remove(filepath.Join(p.opts.RunDir, dataset.MetaFile)); err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, name := range r.Files {
		if err := os.Rename(filepath.Join(p.tmp, name), filepath.Join(p.opts.RunDir, name)); err != nil {
			return fmt.Errorf("run directory is incomplete, prepare again: %w", err)
		}
	}
	dir, err := os.Open(p.opts.RunDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
