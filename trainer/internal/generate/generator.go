package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// ErrLogits is wrapped by the error about logits that no token can be picked
// from: the model has diverged.
var ErrLogits = errors.New("unusable logits")

// Decoder is what gpt.Decoder offers.
type Decoder interface {
	Reset()
	Len() int
	Feed(tokens []int32) ([]float32, error)
}

// Tokenizer is what bpe.Tokenizer offers.
type Tokenizer interface {
	Encode(text string) []int32
	Decode(ids []int32) []byte
	EndOfText() (int32, bool)
}

// Reason says why a text ended.
type Reason string

// The reasons, by OpenAI's names.
const (
	ReasonStop   Reason = "stop"   // end of text, or a stop string
	ReasonLength Reason = "length" // MaxTokens reached
)

// Result describes a finished text.
type Result struct {
	Reason       Reason
	PromptTokens int
	Tokens       []int32 // those made, without the end of text
}

// Generator continues prompts with one decoder. It is not safe for concurrent use.
type Generator struct {
	dec   Decoder
	tok   Tokenizer
	block int
}

// New returns a generator; block is the decoder's longest sequence, in tokens.
func New(dec Decoder, tok Tokenizer, block int) *Generator {
	return &Generator{dec: dec, tok: tok, block: block}
}

// Generate continues prompt and calls emit with each piece of text that became
// certain: whole runes, nothing of a stop string. An error of emit, or of ctx,
// ends it; the result then tells what was made so far.
//
// When the block is full, its second half is fed again and goes on from there,
// so a text may be longer than a block. A prompt longer than a block counts
// only with its last tokens.
func (g *Generator) Generate(ctx context.Context, prompt []int32, o Options, emit func(text string) error) (Result, error) {
	res := Result{PromptTokens: len(prompt)}
	if err := o.Validate(); err != nil {
		return res, err
	}
	eot, hasEOT := g.tok.EndOfText()
	history := append([]int32(nil), prompt...)
	if len(history) == 0 {
		// A text begins where another one ended: that is how it was trained.
		if !hasEOT {
			return res, fmt.Errorf("%w: the prompt is empty and the tokenizer has no end-of-text token to begin with", ErrOptions)
		}
		history = append(history, eot)
	}
	if len(history) > g.block {
		history = history[len(history)-g.block:]
	}
	g.dec.Reset()
	logits, err := g.feed(history)
	pick := newSampler(o)
	text := textStream{stops: o.Stop}
	for err == nil {
		if err = context.Cause(ctx); err != nil {
			break
		}
		id := pick.pick(logits)
		if hasEOT && id == eot {
			res.Reason = ReasonStop
			break
		}
		res.Tokens = append(res.Tokens, id)
		history = append(history, id)
		if err = send(emit, text.write(g.tok.Decode([]int32{id}))); err != nil {
			break
		}
		if text.stopped {
			res.Reason = ReasonStop
			break
		}
		if len(res.Tokens) == o.MaxTokens {
			res.Reason = ReasonLength
			break
		}
		logits, err = g.next(history)
	}
	if err != nil {
		return res, fmt.Errorf("generate token %d: %w", len(res.Tokens)+1, err)
	}
	return res, send(emit, text.end())
}

// next feeds the last token of history, sliding the window when it is full.
func (g *Generator) next(history []int32) ([]float32, error) {
	if g.dec.Len() < g.block {
		return g.feed(history[len(history)-1:])
	}
	g.dec.Reset()
	return g.feed(history[len(history)-max(1, g.block/2):])
}

func (g *Generator) feed(tokens []int32) ([]float32, error) {
	logits, err := g.dec.Feed(tokens)
	if err != nil {
		return nil, err
	}
	if len(logits) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrLogits)
	}
	for id, l := range logits {
		if math.IsNaN(float64(l)) || math.IsInf(float64(l), 0) {
			return nil, fmt.Errorf("%w: that of token %d is %v", ErrLogits, id, l)
		}
	}
	return logits, nil
}

func send(emit func(string) error, text string) error {
	if text == "" || emit == nil {
		return nil
	}
	return emit(text)
}
