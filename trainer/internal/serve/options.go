package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrOptions is wrapped by every error about Options.
var ErrOptions = errors.New("invalid server option")

// Options describe a server. Fields without a default must be set.
type Options struct {
	Model         string   // the id that clients see
	Digest        string   // sha256:<hex> of model.safetensors
	ContextLength int      // tokens of a prompt and its continuation
	Engines       []Engine // as many requests run at once
	Encoder       Encoder

	MaxBody        int64         // bytes of a request
	MaxTokens      int           // most tokens that a request may ask for
	RequestTimeout time.Duration // for one answer
	DrainTimeout   time.Duration // for running answers at shutdown

	Now  func() time.Time
	Seed func() uint64 // for requests that name none
	// NewID returns what follows "cmpl-" in an answer's id.
	NewID func() string
	Log   *slog.Logger
}

func (o Options) validate() error {
	switch {
	case o.Model == "":
		return fmt.Errorf("%w: no model id", ErrOptions)
	case len(o.Engines) == 0:
		return fmt.Errorf("%w: concurrency is 0, want 1 or more", ErrOptions)
	case o.ContextLength < 1:
		return fmt.Errorf("%w: context length is %d, want 1 or more", ErrOptions, o.ContextLength)
	case o.MaxBody < 1:
		return fmt.Errorf("%w: max-body is %d bytes, want 1 or more", ErrOptions, o.MaxBody)
	case o.MaxTokens < 1:
		return fmt.Errorf("%w: max-tokens is %d, want 1 or more", ErrOptions, o.MaxTokens)
	case o.RequestTimeout <= 0:
		return fmt.Errorf("%w: request-timeout is %v, want more than 0", ErrOptions, o.RequestTimeout)
	case o.DrainTimeout < 0:
		return fmt.Errorf("%w: drain-timeout is %v, want 0 or more", ErrOptions, o.DrainTimeout)
	}
	return nil
}
