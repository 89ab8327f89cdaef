package gate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What to do with a value whose interval holds its threshold.
const (
	NoiseBlocks = "block"
	NoisePasses = "pass"
)

// Policy is what a candidate must meet. A nil threshold is not applied. Losses
// are in nats per token.
type Policy struct {
	MaxValLoss     *float64 `yaml:"max_val_loss" json:"max_val_loss,omitempty"`
	MaxTestLoss    *float64 `yaml:"max_test_loss" json:"max_test_loss,omitempty"`
	MaxPerplexity  *float64 `yaml:"max_perplexity" json:"max_perplexity,omitempty"`       // of the test split
	MaxBitsPerByte *float64 `yaml:"max_bits_per_byte" json:"max_bits_per_byte,omitempty"` // of the test split

	// MaxRegression is how much worse than the promoted model the candidate
	// may be on the test split: nats per token, or bits per byte when their
	// tokenizers differ. Negative asks for an improvement.
	MaxRegression *float64 `yaml:"max_regression" json:"max_regression,omitempty"`

	// MaxStandardError bounds the standard error of both losses.
	MaxStandardError *float64 `yaml:"max_standard_error" json:"max_standard_error,omitempty"`
	// MinDocuments is asked of both splits: with fewer than two, errors are
	// taken over windows of one text, which are not independent.
	MinDocuments int `yaml:"min_documents" json:"min_documents"`

	MinTrainIter   *int `yaml:"min_train_iter" json:"min_train_iter,omitempty"`
	AllowEarlyStop bool `yaml:"allow_early_stop" json:"allow_early_stop"`
	AllowSampled   bool `yaml:"allow_sampled" json:"allow_sampled"`

	RequireDataQuality bool `yaml:"require_data_quality" json:"require_data_quality"`
	// RequireImage asks for a code image; one that is given must be a digest
	// reference in any case.
	RequireImage  bool     `yaml:"require_image" json:"require_image"`
	RequiredFiles []string `yaml:"required_files" json:"required_files,omitempty"` // relative to the run directory

	WithinNoise string `yaml:"within_noise" json:"within_noise"` // NoiseBlocks or NoisePasses
}

// Default returns the policy that a file starts from: no thresholds, everything
// else asked for.
func Default() Policy {
	return Policy{
		MinDocuments: 2, RequireDataQuality: true, RequireImage: true, WithinNoise: NoiseBlocks,
		RequiredFiles: []string{
			"train.bin", "val.bin", "test.bin", "tokenizer.json", "meta.json",
			"data_report.json", "data_quality_report.json", "eval_report.json",
		},
	}
}

// ErrPolicy is wrapped by every error about a policy.
var ErrPolicy = errors.New("invalid gate policy")

// maxPolicy bounds what is read, in bytes.
const maxPolicy = 64 << 10

// ReadPolicy reads a policy in YAML or JSON over base. Unknown and repeated keys
// are errors: a threshold with a misspelt name must not go unnoticed.
func ReadPolicy(r io.Reader, base Policy) (Policy, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPolicy+1))
	if err != nil {
		return Policy{}, fmt.Errorf("read gate policy: %w", err)
	}
	if len(b) > maxPolicy {
		return Policy{}, fmt.Errorf("%w: more than %d bytes", ErrPolicy, maxPolicy)
	}
	p := base
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return Policy{}, fmt.Errorf("%w: %s", ErrPolicy, oneLine(err))
	}
	var more yaml.Node
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return Policy{}, fmt.Errorf("%w: more than one document in the file", ErrPolicy)
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Validate names the first field that no policy can have.
func (p Policy) Validate() error {
	for _, f := range []struct {
		name     string
		value    *float64
		negative bool
	}{
		{"max_val_loss", p.MaxValLoss, false}, {"max_test_loss", p.MaxTestLoss, false},
		{"max_perplexity", p.MaxPerplexity, false}, {"max_bits_per_byte", p.MaxBitsPerByte, false},
		{"max_standard_error", p.MaxStandardError, false}, {"max_regression", p.MaxRegression, true},
	} {
		switch {
		case f.value == nil:
		case math.IsNaN(*f.value) || math.IsInf(*f.value, 0):
			return fmt.Errorf("%w: %s is %v, want a finite number", ErrPolicy, f.name, *f.value)
		case *f.value < 0 && !f.negative:
			return fmt.Errorf("%w: %s is %v, want 0 or more", ErrPolicy, f.name, *f.value)
		}
	}
	if p.MinTrainIter != nil && *p.MinTrainIter < 0 {
		return fmt.Errorf("%w: min_train_iter is %d, want 0 or more", ErrPolicy, *p.MinTrainIter)
	}
	if p.MinDocuments < 0 {
		return fmt.Errorf("%w: min_documents is %d, want 0 or more", ErrPolicy, p.MinDocuments)
	}
	if p.WithinNoise != NoiseBlocks && p.WithinNoise != NoisePasses {
		return fmt.Errorf("%w: within_noise is %q, want %q or %q", ErrPolicy, p.WithinNoise, NoiseBlocks, NoisePasses)
	}
	for _, f := range p.RequiredFiles {
		if f == "" || path.IsAbs(f) || path.Clean(f) != f || strings.HasPrefix(f, "..") || strings.ContainsAny(f, "\\\x00") {
			return fmt.Errorf("%w: required_files names %q, want a path inside the run directory", ErrPolicy, f)
		}
	}
	return nil
}
