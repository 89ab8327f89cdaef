package commitstatus

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/trainyard/internal/pushrun"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	secret = "s3cr3t-t0ken-of-a-test"
)

// told is one status that a forge accepted.
type told struct {
	Forge                                              pushrun.Forge
	Repository, Commit, State, Description, URL, Label string
}

// forge answers as the real ones do: it looks at the path, the method, the headers
// and the form of the body, and only then creates a status.
type forge struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	told  []told
	asked int
	// next answers the requests to come, instead of the forge.
	next []http.HandlerFunc
	// gitlab has the state of each name of a commit, as GitLab refuses repeats.
	gitlab map[string]string
}

func newForge(t *testing.T) *forge {
	f := &forge{t: t, gitlab: map[string]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// answers has the requests to come answered so.
func (f *forge) answers(with ...http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, with...)
}

func (f *forge) all() []told {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]told(nil), f.told...)
}

func (f *forge) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *forge) states() string {
	var states []string
	for _, s := range f.all() {
		states = append(states, s.State)
	}
	return strings.Join(states, " ")
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked++
	var special http.HandlerFunc
	if len(f.next) > 0 {
		special, f.next = f.next[0], f.next[1:]
	}
	f.mu.Unlock()
	if special != nil {
		special(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	if r.Method != http.MethodPost {
		answer(w, http.StatusMethodNotAllowed, `{"message": "405 Method Not Allowed"}`)
		return
	}
	if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") == "" {
		answer(w, http.StatusUnsupportedMediaType, `{"message": "no JSON"}`)
		return
	}
	switch path := r.URL.EscapedPath(); {
	case strings.HasPrefix(path, "/api/v4/projects/"):
		f.gitLab(w, r, strings.TrimPrefix(path, "/api/v4/projects/"), body)
	case strings.HasPrefix(path, "/api/v1/repos/"):
		f.gitHub(w, r, pushrun.Gitea, strings.TrimPrefix(path, "/api/v1/repos/"), body)
	case strings.HasPrefix(path, "/repos/"):
		f.gitHub(w, r, pushrun.GitHub, strings.TrimPrefix(path, "/repos/"), body)
	case strings.HasPrefix(path, "/api/v3/repos/"): // GitHub Enterprise
		f.gitHub(w, r, pushrun.GitHub, strings.TrimPrefix(path, "/api/v3/repos/"), body)
	default:
		answer(w, http.StatusNotFound, `{"message": "Not Found"}`)
	}
}

// gitHub answers as GitHub, and as Gitea, which is made after it.
func (f *forge) gitHub(w http.ResponseWriter, r *http.Request, kind pushrun.Forge, path string, body []byte) {
	h := r.Header
	switch kind {
	case pushrun.GitHub:
		if h.Get("Authorization") != "Bearer "+secret {
			answer(w, http.StatusUnauthorized, `{"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest", "status": "401"}`)
			return
		}
		if h.Get("Accept") != "application/vnd.github+json" || h.Get("X-GitHub-Api-Version") == "" {
			answer(w, http.StatusUnsupportedMediaType, `{"message": "Unsupported 'Accept' header"}`)
			return
		}
	case pushrun.Gitea:
		if h.Get("Authorization") != "token "+secret {
			answer(w, http.StatusUnauthorized, `{"message": "user does not exist [uid: 0, name: ]", "url": "https://gitea.example.com/api/swagger"}`)
			return
		}
	}
	part := strings.Split(path, "/")
	if len(part) != 4 || part[2] != "statuses" || part[0] != "owner" {
		answer(w, http.StatusNotFound, `{"message": "Not Found", "documentation_url": "https://docs.github.com/rest/commits/statuses#create-a-commit-status", "status": "404"}`)
		return
	}
	if part[3] != commit {
		answer(w, http.StatusUnprocessableEntity, `{"message": "No commit found for SHA: `+part[3]+`", "status": "422"}`)
		return
	}
	var s struct {
		State       string `json:"state"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	if err := strict(body, &s); err != nil {
		answer(w, http.StatusBadRequest, `{"message": "Problems parsing JSON"}`)
		return
	}
	invalid := func(field, why string) {
		answer(w, http.StatusUnprocessableEntity, fmt.Sprintf(`{"message": "Validation Failed", "errors": [{"resource": "Status", "code": "custom", "field": %q, "message": %q}]}`, field, why))
	}
	switch {
	case !strings.Contains(" pending success failure error ", " "+s.State+" "):
		invalid("state", "state is not included in the list")
		return
	case kind == pushrun.GitHub && len([]rune(s.Description)) > 140:
		invalid("description", "description is too long (maximum is 140 characters)")
		return
	case kind == pushrun.GitHub && strings.ContainsFunc(s.Description, func(r rune) bool { return r > 0xffff }):
		invalid("description", "description doesn't accept 4-byte Unicode")
		return
	case s.TargetURL != "" && !strings.HasPrefix(s.TargetURL, "http"):
		invalid("target_url", "target_url must use http(s) scheme")
		return
	}
	f.keep(told{kind, part[0] + "/" + part[1], part[3], s.State, s.Description, s.TargetURL, s.Context})
	answer(w, http.StatusCreated, `{"id": 1, "state": "`+s.State+`"}`)
}

func (f *forge) gitLab(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	if r.Header.Get("PRIVATE-TOKEN") != secret || r.Header.Get("Authorization") != "" {
		answer(w, http.StatusUnauthorized, `{"message": "401 Unauthorized"}`)
		return
	}
	// The project is one segment: its slashes are escaped.
	part := strings.Split(path, "/")
	if len(part) != 3 || part[1] != "statuses" || !strings.HasPrefix(part[0], "owner%2F") {
		answer(w, http.StatusNotFound, `{"message": "404 Project Not Found"}`)
		return
	}
	if part[2] != commit {
		answer(w, http.StatusNotFound, `{"message": "404 Commit Not Found"}`)
		return
	}
	var s struct {
		State       string `json:"state"`
		Ref         string `json:"ref"`
		Name        string `json:"name"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
	}
	if err := strict(body, &s); err != nil || s.Ref != "main" {
		answer(w, http.StatusBadRequest, `{"error": "state does not have a valid value"}`)
		return
	}
	f.mu.Lock()
	was := f.gitlab[s.Name]
	f.mu.Unlock()
	event := map[string]string{"pending": "enqueue", "running": "run", "success": "success", "failed": "drop", "canceled": "cancel"}[s.State]
	switch {
	case event == "":
		answer(w, http.StatusBadRequest, `{"error": "state does not have a valid value"}`)
		return
	case len([]rune(s.Description)) > 255:
		answer(w, http.StatusBadRequest, `{"message": {"description": ["is too long (maximum is 255 characters)"]}}`)
		return
	case len(s.TargetURL) > 255:
		answer(w, http.StatusBadRequest, `{"message": {"target_url": ["is too long (maximum is 255 characters)"]}}`)
		return
	case was == s.State && (was == "pending" || was == "running"), was == "running" && s.State == "pending":
		answer(w, http.StatusBadRequest, fmt.Sprintf(`{"message": "Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via \"%s\")"}`, event, was, event))
		return
	}
	f.mu.Lock()
	f.gitlab[s.Name] = s.State
	f.mu.Unlock()
	f.keep(told{pushrun.GitLab, strings.ReplaceAll(part[0], "%2F", "/"), part[2], s.State, s.Description, s.TargetURL, s.Name})
	answer(w, http.StatusCreated, `{"id": 91, "status": "`+s.State+`"}`)
}

func (f *forge) keep(s told) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, s)
}

func strict(body []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

// says is a handler that answers so, with headers in pairs.
func says(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func clientOf(t *testing.T, kind pushrun.Forge, address string) *Client {
	t.Helper()
	c, err := NewClient(kind, address, tokenFile(t, secret+"\n"), []string{strings.TrimPrefix(strings.SplitN(address+"/", "/", 4)[2], "http://")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
