package serve

import (
	"bufio"
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

func TestCompletionHasOpenAIsShape(t *testing.T) {
	s := newServer(t, testOptions(&script{words: []string{" 150", " million"}}))
	w := complete(t, s, `{"model":"nano","prompt":"How far?","max_tokens":5,"temperature":0,"user":"me"}`)
	want := `{"id":"cmpl-7","object":"text_completion","created":1700000000,"model":"nano","system_fingerprint":"sha256:abc",` +
		`"choices":[{"text":" 150 million","index":0,"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}` + "\n"
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s\nwant %s", w.Code, w.Body, want)
	}
	if got := w.Header().Get("X-Model-Digest"); got != "sha256:abc" {
		t.Errorf("X-Model-Digest %q", got)
	}
}

func TestParametersReachTheGenerator(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want generate.Options
		text string
	}{
		"defaults are OpenAI's": {`{"prompt":"x"}`, generate.Options{MaxTokens: 16, Temperature: 1, TopP: 1, Seed: 42}, "ab"},
		"all of them": {`{"prompt":["x"],"max_tokens":1,"temperature":0.5,"top_p":0.9,"top_k":3,"seed":-1,"stop":["\n","END"],"n":1,"best_of":1,"suffix":"","logit_bias":{},"presence_penalty":0}`,
			generate.Options{MaxTokens: 1, Temperature: .5, TopP: .9, TopK: 3, Seed: 1<<64 - 1, Stop: []string{"\n", "END"}}, "a"},
		"one stop":  {`{"prompt":"x","stop":"END"}`, generate.Options{MaxTokens: 16, Temperature: 1, TopP: 1, Seed: 42, Stop: []string{"END"}}, "ab"},
		"echo":      {`{"prompt":"x=","echo":true}`, generate.Options{MaxTokens: 16, Temperature: 1, TopP: 1, Seed: 42}, "x=ab"},
		"top_p 0":   {`{"top_p":0}`, generate.Options{MaxTokens: 16, Temperature: 1, TopP: math.SmallestNonzeroFloat64, Seed: 42}, "ab"},
		"no prompt": {`{}`, generate.Options{MaxTokens: 16, Temperature: 1, TopP: 1, Seed: 42}, "ab"},
	} {
		e := &script{words: []string{"a", "b"}}
		w := complete(t, newServer(t, testOptions(e)), c.body)
		if w.Code != http.StatusOK || !reflect.DeepEqual(e.got, c.want) {
			t.Errorf("%s: %d, options %+v, want %+v", name, w.Code, e.got, c.want)
			continue
		}
		if got := decode[completion](t, w.Body).Choices[0].Text; got != c.text {
			t.Errorf("%s: text %q, want %q", name, got, c.text)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		status int
		param  string
		words  string
	}{
		"no JSON":            {`{"prompt":`, 400, "", "no JSON"},
		"two values":         {`{"prompt":"a"}{}`, 400, "", "no JSON"},
		"a brace too many":   {`{"prompt":"a"}}`, 400, "", "no JSON"},
		"an array":           {`[]`, 400, "", "the body is no JSON object"},
		"null":               {`null`, 400, "", "the body is no JSON object"},
		"space beyond":       {`{"prompt":"a"}` + strings.Repeat(" ", 1000), 413, "", "more than 1000 bytes"},
		"wrong type":         {`{"max_tokens":"many"}`, 400, "max_tokens", "max_tokens is a string"},
		"too large":          {`{"prompt":"` + strings.Repeat("a", 1000) + `"}`, 413, "", "more than 1000 bytes"},
		"another model":      {`{"model":"gpt-4","prompt":"a"}`, 404, "model", `"gpt-4" does not exist`},
		"two prompts":        {`{"prompt":["a","b"]}`, 400, "prompt", "2 strings"},
		"token ids":          {`{"prompt":[1,2]}`, 400, "prompt", "must be a string"},
		"a long prompt":      {`{"prompt":"` + strings.Repeat("a", 21) + `"}`, 400, "prompt", "21 tokens, the model reads at most 20"},
		"no tokens":          {`{"max_tokens":0}`, 400, "", "max_tokens is 0"},
		"too many tokens":    {`{"max_tokens":101}`, 400, "max_tokens", "at most 100"},
		"hot":                {`{"temperature":-1}`, 400, "", "temperature is -1"},
		"top_p of two":       {`{"top_p":2}`, 400, "", "top_p is 2"},
		"a negative top_p":   {`{"top_p":-1}`, 400, "", "top_p is -1"},
		"an empty stop":      {`{"stop":""}`, 400, "", "stop string 0 is empty"},
		"five stops":         {`{"stop":["a","b","c","d","e"]}`, 400, "stop", "at most 4"},
		"logprobs":           {`{"logprobs":1}`, 400, "logprobs", "not supported"},
		"logprobs of zero":   {`{"logprobs":0}`, 400, "logprobs", "not supported"},
		"two answers":        {`{"n":2}`, 400, "n", "not supported"},
		"the best of two":    {`{"best_of":2}`, 400, "best_of", "not supported"},
		"a suffix":           {`{"suffix":"x"}`, 400, "suffix", "not supported"},
		"a bias":             {`{"logit_bias":{"50256":-100}}`, 400, "logit_bias", "not supported"},
		"a presence penalty": {`{"presence_penalty":1}`, 400, "presence_penalty", "not supported"},
	} {
		e := &script{words: []string{"a"}}
		w := complete(t, newServer(t, testOptions(e)), c.body)
		got := decode[wireError](t, w.Body)
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if w.Code != c.status || param != c.param || got.Error.Type != "invalid_request_error" || !strings.Contains(got.Error.Message, c.words) {
			t.Errorf("%s: %d, param %q, %+v; want %d, %q, %q", name, w.Code, param, got.Error, c.status, c.param, c.words)
		}
		if e.got.MaxTokens != 0 {
			t.Errorf("%s: the model was asked", name)
		}
	}
}

func TestStreamSendsPiecesAndEndsWithDone(t *testing.T) {
	gate := make(chan struct{})
	server := httptest.NewServer(newServer(t, testOptions(&script{words: []string{"Ü", " b"}, gate: gate})).Handler())
	defer server.Close()
	resp, err := http.Post(server.URL+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"p","stream":true,"echo":true,"stream_options":{"include_usage":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		if !lines.Scan() {
			t.Fatal("the stream ended early")
		}
		text := lines.Text()
		if lines.Scan(); lines.Text() != "" {
			t.Errorf("no empty line after %q", text)
		}
		return text
	}
	event := func(choice string) string {
		return `data: {"id":"cmpl-7","object":"text_completion","created":1700000000,"model":"nano","system_fingerprint":"sha256:abc","choices":[` + choice + `]`
	}
	want := []string{
		event(`{"text":"p","index":0,"logprobs":null,"finish_reason":null}`) + "}",
		event(`{"text":"Ü","index":0,"logprobs":null,"finish_reason":null}`) + "}",
		event(`{"text":" b","index":0,"logprobs":null,"finish_reason":null}`) + "}",
		event(`{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}`) + "}",
		event(``) + `,"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		"data: [DONE]",
	}
	for i, w := range want {
		if i == 1 || i == 2 {
			gate <- struct{}{} // the piece before this one arrived while the model waited
		}
		if got := next(); got != w {
			t.Errorf("event %d: %s\nwant %s", i, got, w)
		}
	}
	if lines.Scan() {
		t.Errorf("after the end: %q", lines.Text())
	}
}

func TestBusyServerSaysWhenToComeBack(t *testing.T) {
	e := &script{words: []string{"a"}, gate: make(chan struct{}), began: make(chan struct{})}
	s := newServer(t, testOptions(e))
	first := make(chan int)
	go func() { first <- complete(t, s, `{"prompt":"a"}`).Code }()
	<-e.began
	w := complete(t, s, `{"prompt":"b"}`)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || decode[wireError](t, w.Body).Error.Type != "rate_limit_error" {
		t.Errorf("second request: %d, headers %v", w.Code, w.Header())
	}
	close(e.gate)
	if code := <-first; code != http.StatusOK {
		t.Errorf("first request: %d", code)
	}
	e.began = nil
	if w := complete(t, s, `{"prompt":"c"}`); w.Code != http.StatusOK {
		t.Errorf("after it: %d", w.Code)
	}
}

func TestClientThatGoesAwayStopsTheModel(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		e := &script{words: []string{"a"}, gate: make(chan struct{}), began: make(chan struct{}), ended: make(chan error, 1)}
		server := httptest.NewServer(newServer(t, testOptions(e)).Handler())
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/completions", strings.NewReader(`{"prompt":"a","stream":`+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				resp.Body.Close()
			}
		}()
		<-e.began
		leave()
		if err := <-e.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("stream %s: the model ended with %v", stream, err)
		}
		server.Close()
	}
}

func TestAnswerThatTakesTooLong(t *testing.T) {
	o := testOptions(&script{words: []string{"a"}, gate: make(chan struct{})})
	o.RequestTimeout = time.Millisecond
	s := newServer(t, o)
	w := complete(t, s, `{"prompt":"a"}`)
	if got := decode[wireError](t, w.Body); w.Code != http.StatusGatewayTimeout || got.Error.Code == nil || *got.Error.Code != "timeout" {
		t.Errorf("%d %+v", w.Code, got)
	}
	w = complete(t, s, `{"prompt":"a","stream":true}`)
	if body := w.Body.String(); !strings.Contains(body, `"code":"timeout"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("stream %q", body)
	}
}

func TestFailureOfTheModelShowsNoDetail(t *testing.T) {
	s := newServer(t, testOptions(&script{err: errors.New("secret path /x")}))
	w := complete(t, s, `{"prompt":"a"}`)
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s = newServer(t, testOptions(&script{err: generate.ErrOptions}))
	if w := complete(t, s, `{}`); w.Code != http.StatusBadRequest {
		t.Errorf("a prompt that the generator refuses: %d", w.Code)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(`{"model":"nano","prompt":["a"],"stop":["x"],"max_tokens":3,"stream":true}`)
	f.Add(`{"prompt":[[1]],"logit_bias":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		s := newServer(t, testOptions(&script{}))
		j, bad := s.parse(strings.NewReader(body))
		if bad != nil {
			if bad.status < 400 || bad.message == "" {
				t.Errorf("error %+v", bad)
			}
			return
		}
		if err := j.opts.Validate(); err != nil || len(j.tokens) > 20 {
			t.Errorf("accepted %+v: %v", j, err)
		}
	})
}
