package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The test's own program is the hook when git starts it.
func TestMain(m *testing.M) {
	if os.Getenv("PUSH_EVENT_URL") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type event struct {
	Ref, Before, After string
	Deleted            bool
	Commits            []struct{ ID string }
}

// listener keeps the events that it gets.
type listener struct {
	*httptest.Server
	mu     sync.Mutex
	events []event
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e event
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		l.events = append(l.events, e)
		l.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(l.Close)
	return l
}

// got are the events so far.
func (l *listener) got() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// server is a bare repository with the hook, and a clone of it.
type server struct {
	bare, clone string
	env         []string
}

func newServer(t *testing.T, url string) server {
	t.Helper()
	dir := t.TempDir()
	s := server{bare: filepath.Join(dir, "bare.git"), clone: filepath.Join(dir, "clone")}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"PUSH_EVENT_URL=" + url, "PUSH_EVENT_REPOSITORY=trainyard/trainyard", "PUSH_EVENT_CLONE_URL=git://192.0.2.1:30418/trainyard.git", "PUSH_EVENT_SECRET_FILE=" + secret,
	}
	s.git(t, dir, "init", "-q", "--bare", "-b", "main", s.bare)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(s.bare, "hooks", "post-receive")); err != nil {
		t.Fatal(err)
	}
	s.git(t, dir, "init", "-q", "-b", "main", s.clone)
	s.git(t, s.clone, "remote", "add", "origin", s.bare)
	return s
}

// git runs git and returns what it prints on both streams; it must succeed.
func (s server) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s server) commit(t *testing.T) string {
	t.Helper()
	s.git(t, s.clone, "commit", "-q", "--allow-empty", "-m", "c")
	return s.git(t, s.clone, "rev-parse", "HEAD")
}

func TestAPushTellsTheListener(t *testing.T) {
	l := newListener(t)
	s := newServer(t, l.URL)
	none := strings.Repeat("0", 40)
	first := s.commit(t)
	said := s.git(t, s.clone, "push", "origin", "HEAD:main")
	if !strings.Contains(said, "remote: the listener was told of refs/heads/main (delivery ") {
		t.Errorf("git shows %s", said)
	}
	s.git(t, s.clone, "push", "origin", "HEAD:main") // nothing to push: no event
	second := s.commit(t)
	s.git(t, s.clone, "tag", "v1")
	s.git(t, s.clone, "push", "origin", "HEAD:main", "v1")
	s.git(t, s.clone, "commit", "-q", "--amend", "--allow-empty", "-m", "another")
	third := s.git(t, s.clone, "rev-parse", "HEAD")
	s.git(t, s.clone, "push", "--force", "origin", "HEAD:main")
	s.git(t, s.bare, "config", "receive.denyDeleteCurrent", "ignore")
	s.git(t, s.clone, "push", "origin", ":main")
	var got []string
	for _, e := range l.got() {
		got = append(got, fmt.Sprint(e.Ref, e.Before, e.After, e.Deleted, len(e.Commits)))
	}
	want := []string{
		fmt.Sprint("refs/heads/main", none, first, false, 1),
		fmt.Sprint("refs/heads/main", first, second, false, 1), fmt.Sprint("refs/tags/v1", none, second, false, 0),
		fmt.Sprint("refs/heads/main", second, third, false, 1), fmt.Sprint("refs/heads/main", third, none, true, 0),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAPushSucceedsWhenNobodyListens(t *testing.T) {
	l := newListener(t)
	s := newServer(t, l.URL)
	l.Close()
	commit := s.commit(t)
	said := s.git(t, s.clone, "push", "origin", "HEAD:main")
	if !strings.Contains(said, "remote: the push is in, but no run starts for it: refs/heads/main: nobody took delivery") {
		t.Errorf("git shows %s", said)
	}
	if got := s.git(t, s.bare, "rev-parse", "main"); got != commit {
		t.Errorf("main is at %s, want %s", got, commit)
	}
}

func TestAHookThatIsSetUpWronglySaysSo(t *testing.T) {
	for name, change := range map[string][2]string{
		"no repository": {"PUSH_EVENT_REPOSITORY", ""},
		"no secret":     {"PUSH_EVENT_SECRET_FILE", "/nowhere"},
		"no address":    {"PUSH_EVENT_URL", "el-trainyard:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newListener(t)
			s := newServer(t, l.URL)
			s.env = append(s.env, change[0]+"="+change[1])
			s.commit(t)
			if said := s.git(t, s.clone, "push", "origin", "HEAD:main"); !strings.Contains(said, "remote: the push is in, but no run starts for it: ") || len(l.got()) > 0 {
				t.Errorf("git shows %s, and there are %d events", said, len(l.got()))
			}
		})
	}
}
