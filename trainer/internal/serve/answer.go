package serve

import (
	"encoding/json"
	"net/http"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

// completion is a whole answer, or one piece of a stream.
type completion struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"` // text_completion
	Created           int64    `json:"created"`
	Model             string   `json:"model"`
	SystemFingerprint string   `json:"system_fingerprint"` // the model's digest
	Choices           []choice `json:"choices"`
	Usage             *usage   `json:"usage,omitempty"`
}

type choice struct {
	Text         string           `json:"text"`
	Index        int              `json:"index"`
	Logprobs     *struct{}        `json:"logprobs"`
	FinishReason *generate.Reason `json:"finish_reason"` // null until the end
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func usageOf(r generate.Result) *usage {
	return &usage{r.PromptTokens, len(r.Tokens), r.PromptTokens + len(r.Tokens)}
}

// apiError is an error in OpenAI's shape.
type apiError struct {
	status  int
	kind    string
	param   string
	code    string
	message string
}

const (
	kindInvalid = "invalid_request_error"
	kindServer  = "server_error"
	kindLimit   = "rate_limit_error"
)

func invalid(param, message string) *apiError {
	return &apiError{http.StatusBadRequest, kindInvalid, param, "", message}
}

// body renders the error; param and code are null when there is none.
func (e *apiError) body() map[string]any {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{
		"message": e.message, "type": e.kind, "param": null(e.param), "code": null(e.code),
	}}
}

func (e *apiError) write(w http.ResponseWriter) {
	if e.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.status, e.body())
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone: nobody to tell
}
