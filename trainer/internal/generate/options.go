package generate

import (
	"errors"
	"fmt"
	"math"
)

// ErrOptions is wrapped by every error about Options or a prompt.
var ErrOptions = errors.New("invalid sampling option")

// Options say how tokens are picked and when to stop. The zero value, with
// MaxTokens set, is greedy and so repeats itself exactly.
type Options struct {
	MaxTokens   int     // most tokens to make, at least 1
	Temperature float64 // 0 is greedy; logits are divided by it otherwise
	TopK        int     // keep the K most likely tokens; 0 keeps all
	TopP        float64 // keep the most likely tokens that reach this probability; 0 or 1 keeps all
	Seed        uint64  // of the random stream; unused when greedy
	Stop        []string
}

const maxStops = 16

// Validate names the first option that makes no sense.
func (o Options) Validate() error {
	switch {
	case o.MaxTokens < 1:
		return fmt.Errorf("%w: max_tokens is %d, want 1 or more", ErrOptions, o.MaxTokens)
	case !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0):
		return fmt.Errorf("%w: temperature is %v, want 0 or more", ErrOptions, o.Temperature)
	case o.TopK < 0:
		return fmt.Errorf("%w: top_k is %d, want 0 or more", ErrOptions, o.TopK)
	case !(o.TopP >= 0 && o.TopP <= 1):
		return fmt.Errorf("%w: top_p is %v, want 0 to 1", ErrOptions, o.TopP)
	case len(o.Stop) > maxStops:
		return fmt.Errorf("%w: %d stop strings, want at most %d", ErrOptions, len(o.Stop), maxStops)
	}
	for i, s := range o.Stop {
		if s == "" {
			return fmt.Errorf("%w: stop string %d is empty", ErrOptions, i)
		}
	}
	return nil
}
