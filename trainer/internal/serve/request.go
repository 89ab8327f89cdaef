package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

// request is the body of POST /v1/completions, as OpenAI's reference has it.
// Fields that would change the answer but are not supported are read so that
// they can be refused.
type request struct {
	Model         string          `json:"model"`
	Prompt        json.RawMessage `json:"prompt"`
	MaxTokens     *int            `json:"max_tokens"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	N             *int            `json:"n"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Stop json.RawMessage `json:"stop"`
	Seed *int64          `json:"seed"`
	Echo bool            `json:"echo"`
	TopK *int            `json:"top_k"` // not OpenAI's, but what other servers call it

	Logprobs         *int            `json:"logprobs"`
	BestOf           *int            `json:"best_of"`
	Suffix           *string         `json:"suffix"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	PresencePenalty  *float64        `json:"presence_penalty"`
	FrequencyPenalty *float64        `json:"frequency_penalty"`
}

// job is a request that was found good.
type job struct {
	prompt       string
	tokens       []int32
	opts         generate.Options
	stream, echo bool
	usage        bool // also at the end of a stream
}

// defaultMaxTokens is OpenAI's.
const defaultMaxTokens = 16

func (s *Server) parse(body io.Reader) (job, *apiError) {
	r, e := readRequest(body)
	if e != nil {
		return job{}, e
	}
	if e := r.refuse(); e != nil {
		return job{}, e
	}
	if r.Model != "" && r.Model != s.o.Model {
		return job{}, &apiError{http.StatusNotFound, kindInvalid, "model", "model_not_found", fmt.Sprintf("the model %q does not exist here, %q does", r.Model, s.o.Model)}
	}
	j := job{stream: r.Stream, echo: r.Echo, usage: r.StreamOptions != nil && r.StreamOptions.IncludeUsage}
	var err error
	if j.prompt, err = oneString(r.Prompt); err != nil {
		return job{}, invalid("prompt", "prompt "+err.Error())
	}
	if j.opts.Stop, err = stops(r.Stop); err != nil {
		return job{}, invalid("stop", "stop "+err.Error())
	}
	j.opts.MaxTokens = or(r.MaxTokens, min(defaultMaxTokens, s.o.MaxTokens))
	j.opts.Temperature = or(r.Temperature, 1)
	if j.opts.TopP = or(r.TopP, 1); j.opts.TopP == 0 {
		// Who asks for 0 wants the likeliest token; to the sampler 0 is all.
		j.opts.TopP = math.SmallestNonzeroFloat64
	}
	j.opts.TopK = or(r.TopK, 0)
	if r.Seed != nil {
		j.opts.Seed = uint64(*r.Seed)
	} else {
		j.opts.Seed = s.o.Seed()
	}
	if j.opts.MaxTokens > s.o.MaxTokens {
		return job{}, invalid("max_tokens", fmt.Sprintf("max_tokens is %d, this server makes at most %d", j.opts.MaxTokens, s.o.MaxTokens))
	}
	if err := j.opts.Validate(); err != nil {
		return job{}, invalid("", err.Error())
	}
	j.tokens = s.o.Encoder.Encode(j.prompt)
	if n := len(j.tokens); n > s.o.ContextLength {
		return job{}, &apiError{http.StatusBadRequest, kindInvalid, "prompt", "context_length_exceeded", fmt.Sprintf("the prompt has %d tokens, the model reads at most %d", n, s.o.ContextLength)}
	}
	return j, nil
}

// readRequest reads the one JSON object that body must be.
func readRequest(body io.Reader) (request, *apiError) {
	var r *request // stays nil for null
	raw, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	var tooLarge *http.MaxBytesError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &tooLarge):
		return request{}, &apiError{http.StatusRequestEntityTooLarge, kindInvalid, "", "", fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return request{}, invalid(wrongType.Field, fmt.Sprintf("%s is a %s, want %s", wrongType.Field, wrongType.Value, wrongType.Type))
	case errors.As(err, &wrongType), err == nil && r == nil:
		return request{}, invalid("", "the body is no JSON object")
	case err != nil:
		return request{}, invalid("", "the body is no JSON: "+err.Error())
	}
	return *r, nil
}

// refuse names the first field that asks for what there is not.
func (r request) refuse() *apiError {
	for _, f := range []struct {
		name  string
		asked bool
		hint  string
	}{
		{"logprobs", r.Logprobs != nil, "leave it out"},
		{"n", r.N != nil && *r.N != 1, "use 1 and ask again with another seed"},
		{"best_of", r.BestOf != nil && *r.BestOf != 1, "use 1"},
		{"suffix", r.Suffix != nil && *r.Suffix != "", "leave it out"},
		{"logit_bias", len(r.LogitBias) > 0 && string(r.LogitBias) != "null" && string(r.LogitBias) != "{}", "leave it out"},
		{"presence_penalty", r.PresencePenalty != nil && *r.PresencePenalty != 0, "use 0"},
		{"frequency_penalty", r.FrequencyPenalty != nil && *r.FrequencyPenalty != 0, "use 0"},
	} {
		if f.asked {
			return &apiError{http.StatusBadRequest, kindInvalid, f.name, "unsupported_parameter", fmt.Sprintf("%s is not supported by this server: %s", f.name, f.hint)}
		}
	}
	return nil
}

// oneString reads a string or an array of one.
func oneString(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil // OpenAI's default: begin a new document
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one, nil
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return "", errors.New("must be a string or an array of one string")
	}
	if len(many) != 1 {
		return "", fmt.Errorf("has %d strings, this server answers one at a time", len(many))
	}
	return many[0], nil
}

// maxStops is OpenAI's.
const maxStops = 4

func stops(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil || len(many) > maxStops {
		return nil, fmt.Errorf("must be a string or an array of at most %d strings", maxStops)
	}
	return many, nil
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
