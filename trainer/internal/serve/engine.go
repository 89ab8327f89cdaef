package serve

import (
	"context"
	"errors"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

// Engine makes text for one request at a time.
type Engine interface {
	// Generate continues prompt; see generate.Generator.
	Generate(ctx context.Context, prompt []int32, o generate.Options, emit func(text string) error) (generate.Result, error)
}

// Encoder turns a prompt into tokens; bpe.Tokenizer is one. It must allow
// concurrent use.
type Encoder interface {
	Encode(text string) []int32
}

// errBusy says that all engines are at work.
var errBusy = errors.New("all engines are busy")

// engines is a fixed set of engines, each used by one request at a time. Nobody
// waits for one: a queue in front of a CPU only hides that it is too small.
type engines chan Engine

func newEngines(all []Engine) engines {
	e := make(engines, len(all))
	for _, x := range all {
		e <- x
	}
	return e
}

func (e engines) take() (Engine, error) {
	select {
	case x := <-e:
		return x, nil
	default:
		return nil, errBusy
	}
}

func (e engines) giveBack(x Engine) { e <- x }
