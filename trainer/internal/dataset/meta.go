package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// MetaFile is the name of a data set's description.
const MetaFile = "meta.json"

// The formats of a data set.
const (
	FormatText = "text"
	FormatQA   = "qa" // each document is "question | answer"
)

// Meta is meta.json: what is in the files of tokens and how they came about.
type Meta struct {
	VocabSize     int     `json:"vocab_size"`
	Tokenizer     string  `json:"tokenizer"` // "bpe"
	TokenDType    DType   `json:"token_dtype"`
	DocsIn        int64   `json:"docs_in"`     // documents read
	DocsOut       int64   `json:"docs_out"`    // documents kept
	TotalChars    int64   `json:"total_chars"` // characters of those kept
	TrainTokens   int64   `json:"train_tokens"`
	ValTokens     int64   `json:"val_tokens"`
	TestTokens    int64   `json:"test_tokens"`
	CharsPerToken float64 `json:"chars_per_token"` // over all splits

	Format          string               `json:"format"` // text or qa
	Separator       string               `json:"separator"`
	SplitSeed       uint64               `json:"split_seed"`
	EndOfText       int32                `json:"end_of_text"` // the token that ends each document
	CorpusSHA256    string               `json:"corpus_sha256"`
	TokenizerSHA256 string               `json:"tokenizer_sha256"` // of tokenizer.json
	Splits          map[string]SplitMeta `json:"splits"`           // by train, val, test
}

// SplitMeta describes one split.
type SplitMeta struct {
	Documents   int64  `json:"documents"`
	Tokens      int64  `json:"tokens"` // with the one that ends each document
	Bytes       int64  `json:"bytes"`  // of text in UTF-8
	SHA256      string `json:"sha256"` // of SPLIT.bin
	IndexSHA256 string `json:"index_sha256"`
}

// ErrMeta is wrapped by every error about what a meta.json says.
var ErrMeta = errors.New("unusable description of a data set")

// maxMeta bounds the size of a meta.json.
const maxMeta = 1 << 20

// ReadMeta reads the meta.json of a directory.
func ReadMeta(dir string) (Meta, error) {
	path := filepath.Join(dir, MetaFile)
	info, err := os.Stat(path)
	if err != nil {
		return Meta{}, fmt.Errorf("data set: %w: run prepare first", err)
	}
	if info.Size() > maxMeta {
		return Meta{}, fmt.Errorf("%w: %s: %d bytes, more than the %d that a description needs", ErrMeta, path, info.Size(), maxMeta)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return Meta{}, fmt.Errorf("data set: %w", err)
	}
	var m Meta
	if err := json.Unmarshal(raw, &m); err != nil {
		return Meta{}, fmt.Errorf("%w: %s: %w", ErrMeta, path, err)
	}
	if err := m.validate(); err != nil {
		return Meta{}, fmt.Errorf("%w: %s: %w", ErrMeta, path, err)
	}
	return m, nil
}

func (m Meta) validate() error {
	if err := m.TokenDType.Validate(); err != nil {
		return err
	}
	switch {
	case m.VocabSize < 1:
		return fmt.Errorf("vocab_size is %d: want 1 or more", m.VocabSize)
	case m.Format != FormatText && m.Format != FormatQA:
		return fmt.Errorf("format is %q: want %s or %s", m.Format, FormatText, FormatQA)
	case m.EndOfText < 0 || int(m.EndOfText) >= m.VocabSize:
		return fmt.Errorf("end_of_text is token %d of a vocabulary of %d", m.EndOfText, m.VocabSize)
	}
	return nil
}

// Bin returns the name of the tokens of a split.
func Bin(split string) string { return split + ".bin" }

// Idx returns the name of the index of a split.
func Idx(split string) string { return split + ".idx" }

// OpenSplit opens the tokens and the index of a split in dir and checks that they
// are what the description says.
func (m Meta) OpenSplit(dir, split string) (*File, Index, error) {
	sm, ok := m.Splits[split]
	if !ok {
		return nil, Index{}, fmt.Errorf("%s: no split %q", filepath.Join(dir, MetaFile), split)
	}
	f, err := Open(filepath.Join(dir, Bin(split)), m.TokenDType)
	if err != nil {
		return nil, Index{}, err
	}
	if f.Len() != sm.Tokens {
		f.Close()
		return nil, Index{}, fmt.Errorf("%s: %d tokens, %s says %d: the files are of two runs", f.path, f.Len(), MetaFile, sm.Tokens)
	}
	x, err := ReadIndex(filepath.Join(dir, Idx(split)), f.Len())
	if err != nil {
		f.Close()
		return nil, Index{}, err
	}
	return f, x, nil
}
