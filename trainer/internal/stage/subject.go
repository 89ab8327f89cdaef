package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// subject is a model directory that was loaded to be measured.
type subject struct {
	evaluate.Subject
	dir      string
	tok      *bpe.Tokenizer
	pool     *par.Pool
	identity evaluate.Identity
}

// batchTokens is how many tokens a batch of an evaluation has, about: enough for
// the kernels, little memory. It is fixed so that it is no parameter of a report.
const batchTokens = 2048

// loadSubject loads a Hugging Face model directory with its tokenizer.
func loadSubject(ctx context.Context, dir string, pool *par.Pool, kernels *kernel.Set) (*subject, error) {
	weights := filepath.Join(dir, hf.WeightsFile)
	if _, err := os.Stat(weights); err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "no model in %s: train first: %w", dir, err)
	}
	digest, err := lineage.HashFile(ctx, weights)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.IO, "model: %w", err)
	}
	m, err := hf.Load(dir)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "model: %w", err)
	}
	tok, err := bpe.Load(dir)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "model: %w", err)
	}
	cfg := m.Config()
	if tok.VocabSize() > cfg.VocabSize {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: the tokenizer has %d tokens, the model knows %d: they do not belong together", dir, tok.VocabSize(), cfg.VocabSize)
	}
	rows := min(max(batchTokens/cfg.BlockSize, 1), 64)
	session, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: rows, MaxT: cfg.BlockSize, Kernels: kernels})
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", dir, err)
	}
	return &subject{
		Subject: evaluate.Subject{Scorer: session, Tokenizer: tok, VocabSize: cfg.VocabSize, Rows: rows, Block: cfg.BlockSize},
		dir:     dir, tok: tok, pool: pool,
		identity: evaluate.Identity{Digest: digest, Tokenizer: tok.Digest(), VocabSize: cfg.VocabSize, BlockSize: cfg.BlockSize, Params: cfg.ParamCount()},
	}, nil
}

// hexDigest returns the digits of a digest that names its algorithm.
func hexDigest(sum string) string { return strings.TrimPrefix(sum, "sha256:") }

// withAlgorithm is the inverse; no digest stays none.
func withAlgorithm(digits string) string {
	if digits == "" {
		return ""
	}
	return "sha256:" + digits
}
