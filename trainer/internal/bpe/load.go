package bpe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of the files that a tokenizer is kept in.
const (
	TokenizerFile = "tokenizer.json"
	VocabFile     = "vocab.json"
	MergesFile    = "merges.txt"
)

// Limits on what is read, far above any byte-level vocabulary in use, so that a file
// that is none cannot take all memory.
const (
	maxFileBytes  = 64 << 20
	maxTokens     = 1 << 20
	maxAdded      = 1 << 12
	maxTokenBytes = 4096
)

// Load reads the tokenizer of a directory: its tokenizer.json, or without one its
// vocab.json and merges.txt. A path of a file is read as tokenizer.json. The error wraps
// fs.ErrNotExist when there is no tokenizer.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	if !info.IsDir() {
		return LoadFile(path)
	}
	file := filepath.Join(path, TokenizerFile)
	t, err := LoadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	t, err = loadVocabAndMerges(filepath.Join(path, VocabFile), filepath.Join(path, MergesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load tokenizer: %s has neither %s nor %s with %s: %w", path, TokenizerFile, VocabFile, MergesFile, err)
	}
	return t, err
}

// LoadFile reads a tokenizer.json.
func LoadFile(path string) (*Tokenizer, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", path, err)
	}
	return t, nil
}

func loadVocabAndMerges(vocabPath, mergesPath string) (*Tokenizer, error) {
	vocabData, err := readFile(vocabPath)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	mergesData, err := readFile(mergesPath)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	vocab, err := parseVocab(vocabData)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", vocabPath, err)
	}
	merges, err := parseMerges(mergesData)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", mergesPath, err)
	}
	t, err := assembleUnmarked(vocab, merges)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s with %s: %w", vocabPath, MergesFile, err)
	}
	return t, nil
}

// readFile reads at most maxFileBytes; a longer file is an error.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading: nothing is lost
	tooLarge := fmt.Errorf("%s is larger than %d MiB: it is no tokenizer file", path, maxFileBytes>>20)
	if info, err := f.Stat(); err == nil && info.Size() > maxFileBytes {
		return nil, tooLarge
	}
	// What is no regular file has no size to go by.
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxFileBytes {
		return nil, tooLarge
	}
	return data, nil
}
