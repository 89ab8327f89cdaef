package stage

import "github.com/trainyard/trainyard/trainer/internal/generate"

// SampleReport is samples.json: the same prompts before and after training.
type SampleReport struct {
	SchemaVersion int          `json:"schema_version"`
	Base          *SampleModel `json:"base"` // null when there is none
	Tuned         SampleModel  `json:"tuned"`
	Greedy        bool         `json:"greedy"`
	MaxTokens     int          `json:"max_tokens"`
	Temperature   float64      `json:"temperature"`
	TopK          int          `json:"top_k"`
	TopP          float64      `json:"top_p"`
	Seed          uint64       `json:"seed"`
	Samples       []Sample     `json:"samples"`
	Exact         *SampleScore `json:"exact"` // null without known answers
}

// SampleModel says which model answered.
type SampleModel struct {
	Source string `json:"source"`           // a directory, relative to the run directory if in there, or how the weights were drawn
	Digest string `json:"digest,omitempty"` // sha256:<hex> of its model.safetensors
}

// SampleScore counts answers that equal the known ones, spaces around aside.
type SampleScore struct {
	Base  int `json:"base"`
	Tuned int `json:"tuned"`
	Of    int `json:"of"`
}

// Sample is one prompt and its answers.
type Sample struct {
	Prompt   string        `json:"prompt"`
	Expected string        `json:"expected,omitempty"`
	Base     *SampleAnswer `json:"base"`
	Tuned    SampleAnswer  `json:"tuned"`
}

// SampleAnswer is what a model made of a prompt.
type SampleAnswer struct {
	Text   string          `json:"text"` // without the prompt
	Tokens int             `json:"tokens"`
	Reason generate.Reason `json:"finish_reason"`
	Exact  *bool           `json:"exact,omitempty"` // equals the known answer
}

// add counts a sample whose answer is known.
func (c *SampleScore) add(x Sample) {
	if x.Expected == "" {
		return
	}
	c.Of++
	if *x.Tuned.Exact {
		c.Tuned++
	}
	if x.Base != nil && *x.Base.Exact {
		c.Base++
	}
}
