package gitsource

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// left lists what is in a workspace, for a look at what a failed fetch leaves.
func left(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestFetchChecksOutTheRevision(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	for name, c := range map[string]struct {
		revision, want, readme string
	}{
		"default branch":           {"", o.second, "second\n"},
		"branch":                   {"main", o.second, "second\n"},
		"branch with a slash":      {"team/feature", o.feature, "first\n"},
		"full name":                {"refs/heads/team/feature", o.feature, "first\n"},
		"annotated tag":            {"v1", o.first, "first\n"},
		"commit at a branch":       {o.feature, o.feature, "first\n"},
		"commit below a branch":    {o.first, o.first, "first\n"},
		"commit in capitals":       {strings.ToUpper(o.first), o.first, "first\n"},
		"tag object by its digits": {o.tagged, o.first, "first\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := t.TempDir()
			r, err := Fetch(t.Context(), Options{URL: s.address(), Revision: c.revision, Workspace: ws, Path: "source", Depth: 1})
			if name == "tag object by its digits" {
				// It is no commit: the result must not pass for one.
				if exitcode.Of(err) != exitcode.Integrity {
					t.Fatalf("got %v, want an integrity error", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Result{URL: s.address(), Commit: c.want, Path: filepath.Join(ws, "source"), Fetched: true, Verified: true}
			if r != want {
				t.Errorf("got %+v, want %+v", r, want)
			}
			if got := read(t, ws, "source", "README.md"); got != c.readme {
				t.Errorf("README.md is %q, want %q", got, c.readme)
			}
			if got := runGit(t, r.Path, "rev-parse", "HEAD"); got != c.want {
				t.Errorf("git says HEAD is %s, want %s", got, c.want)
			}
			if got := runGit(t, r.Path, "status", "--porcelain"); got != "" {
				t.Errorf("git finds changes: %s", got)
			}
			if got := left(t, ws); got != "source" {
				t.Errorf("the workspace holds %q, want source alone", got)
			}
		})
	}
}

func TestFetchTakesNoMoreHistoryThanAskedFor(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	for name, c := range map[string]struct {
		depth int
		want  string
	}{"one commit": {1, "1"}, "all": {0, "2"}} {
		t.Run(name, func(t *testing.T) {
			r, err := Fetch(t.Context(), Options{URL: s.address(), Revision: "main", Workspace: t.TempDir(), Path: "source", Depth: c.depth})
			if err != nil {
				t.Fatal(err)
			}
			if got := runGit(t, r.Path, "rev-list", "--count", "HEAD"); got != c.want {
				t.Errorf("%s commits, want %s", got, c.want)
			}
		})
	}
}

func TestFetchVerifiesTheCommit(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	ws := t.TempDir()
	_, err := Fetch(t.Context(), Options{URL: s.address(), Revision: "main", Commit: o.first, Workspace: ws, Path: "source", Depth: 1})
	if exitcode.Of(err) != exitcode.Integrity || !strings.Contains(err.Error(), o.first) || !strings.Contains(err.Error(), o.second) {
		t.Errorf("got %v, want an integrity error that names both commits", err)
	}
	if got := left(t, ws); got != "" {
		t.Errorf("a refused fetch left %q", got)
	}
	if _, err := Fetch(t.Context(), Options{URL: s.address(), Revision: "main", Commit: o.second, Workspace: ws, Path: "source", Depth: 1}); err != nil {
		t.Error(err)
	}
	_, err = Fetch(t.Context(), Options{URL: s.address(), Revision: o.first, Commit: o.second, Workspace: ws, Path: "source", Depth: 1})
	if exitcode.Of(err) != exitcode.Usage {
		t.Errorf("revision and commit that differ: got %v, want a usage error", err)
	}
}

// A plain server gives only what refs point to; others give any commit.
func TestFetchOfACommitFromServersOfBothKinds(t *testing.T) {
	o := newOrigin(t)
	for _, any := range []string{"false", "true"} {
		t.Run("allowAnySHA1InWant="+any, func(t *testing.T) {
			runGit(t, o.dir, "config", "uploadpack.allowAnySHA1InWant", any)
			s := serve(t, o, false)
			r, err := Fetch(t.Context(), Options{URL: s.address(), Revision: o.first, Workspace: t.TempDir(), Path: "source", Depth: 1})
			if err != nil || r.Commit != o.first {
				t.Fatalf("got %+v, %v", r, err)
			}
			missing := strings.Repeat("ab", 20)
			ws := t.TempDir()
			_, err = Fetch(t.Context(), Options{URL: s.address(), Revision: missing, Workspace: ws, Path: "source", Depth: 1})
			if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), missing) {
				t.Errorf("a commit that nobody has: got %v", err)
			}
			if got := left(t, ws); got != "" {
				t.Errorf("a failed fetch left %q", got)
			}
		})
	}
}

func TestFetchRefusesRevisionsThatAreNotThere(t *testing.T) {
	o := newOrigin(t)
	runGit(t, o.dir, "branch", "both")
	runGit(t, o.dir, "tag", "both")
	s := serve(t, o, false)
	for name, c := range map[string]struct{ revision, want string }{
		"no branch":         {"nope", "has no nope"},
		"abbreviated":       {o.first[:10], "needs all its 40 digits"},
		"branch and tag":    {"both", "refs/heads/both or refs/tags/both"},
		"part of a name":    {"feature", "has no feature"},
		"nothing like that": {"refs/pull/1/head", "has no refs/pull/1/head"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Fetch(t.Context(), Options{URL: s.address(), Revision: c.revision, Workspace: t.TempDir(), Path: "source", Depth: 1})
			if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want bad input that says %q", err, c.want)
			}
		})
	}
}

func TestFetchWithBasicAuth(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, true)
	s.user, s.password = "robot", "s3cret"
	host := strings.TrimPrefix(s.URL, "https://")
	for name, c := range map[string]struct {
		files map[string]string
		code  int
		want  string
	}{
		"git-credentials":            {map[string]string{".git-credentials": "https://x:y@other.example\nhttps://robot:s3cret@" + host + "\n"}, exitcode.OK, ""},
		"username and password":      {map[string]string{"username": "robot\n", "password": "s3cret"}, exitcode.OK, ""},
		"wrong password":             {map[string]string{"username": "robot", "password": "wr0ng"}, exitcode.IO, "with the credentials of the workspace basic-auth"},
		"none for this host":         {map[string]string{".git-credentials": "https://robot:s3cret@other.example\n"}, exitcode.IO, "without credentials, since .git-credentials has no line for https://" + host},
		"none for this scheme":       {map[string]string{".git-credentials": "http://robot:s3cret@" + host + "\n"}, exitcode.IO, "without credentials"},
		"a line that is no address":  {map[string]string{".git-credentials": "robot:s3cret\n"}, exitcode.BadInput, "line 1 of .git-credentials"},
		"a Secret of something else": {map[string]string{"token": "s3cret"}, exitcode.BadInput, "neither .git-credentials nor username and password"},
		"no workspace":               {nil, exitcode.IO, "basic-auth"},
	} {
		t.Run(name, func(t *testing.T) {
			var cred Credentials
			if c.files != nil {
				cred.BasicAuth = t.TempDir()
			}
			for f, text := range c.files {
				if err := os.WriteFile(filepath.Join(cred.BasicAuth, f), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: "source", Depth: 1, Credentials: cred, CABundle: s.ca()})
			if exitcode.Of(err) != c.code {
				t.Fatalf("got %v, want exit code %d", err, c.code)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, want %q and no secret", err, c.want)
				}
				return
			}
			if config := read(t, r.Path, ".git", "config"); strings.Contains(config, "s3cret") {
				t.Errorf("the secret is in the checkout:\n%s", config)
			}
		})
	}
}

func TestFetchSendsNoPasswordInPlainText(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	dir := t.TempDir()
	for f, text := range map[string]string{"username": "robot", "password": "s3cret"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: "source", Depth: 1, Credentials: Credentials{BasicAuth: dir}})
	if exitcode.Of(err) != exitcode.Usage || s.requests.Load() != 0 {
		t.Errorf("got %v after %d requests, want a usage error before any", err, s.requests.Load())
	}
}

// A host that moved answers with a redirect; the other one must not get its password.
func TestFetchSendsNoPasswordAfterARedirect(t *testing.T) {
	var sent []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer other.Close()
	s := serve(t, newOrigin(t), false)
	s.other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "s3cret" {
			t.Errorf("the repository's own host got the password %q", password)
		}
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+r.URL.RequestURI(), http.StatusFound)
	})
	dir := secret(t, map[string]string{".git-credentials": strings.Replace(s.URL, "http://", "http://robot:s3cret@", 1) + "\n"})
	_, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: "source", Depth: 1, Credentials: Credentials{BasicAuth: dir}})
	if err == nil || len(sent) != 1 || sent[0] != "" {
		t.Errorf("the other host got %q (%v), want one request without a password", sent, err)
	}
}

func TestFetchTrustsOnlyKnownAuthorities(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, true)
	_, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: "source", Depth: 1})
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "--ca-bundle") {
		t.Errorf("got %v, want an error that names --ca-bundle", err)
	}
}

func TestFetchReplacesOnlyItsOwn(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	ws := t.TempDir()
	opts := Options{URL: s.address(), Revision: o.first, Workspace: ws, Path: "deep/source", Depth: 1}
	if _, err := Fetch(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "deep/source/built"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	opts.Revision = "main"
	if _, err := Fetch(t.Context(), opts); err != nil {
		t.Fatalf("the same repository again: %v", err)
	}
	if got := left(t, filepath.Join(ws, "deep/source")); got != ".git README.md cmd" {
		t.Errorf("the checkout holds %q: not what was fetched alone", got)
	}
	if got := left(t, filepath.Join(ws, "deep")); got != "source" {
		t.Errorf("the folder holds %q, want source alone", got)
	}
	for name, prepare := range map[string]func(dir string){
		"a folder of files": func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"another repository": func(dir string) {
			runGit(t, dir, "init", "-q")
			runGit(t, dir, "remote", "add", "origin", "https://example.com/other")
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws := t.TempDir()
			dir := filepath.Join(ws, "source")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			prepare(dir)
			before := left(t, dir)
			opts := Options{URL: s.address(), Workspace: ws, Path: "source", Depth: 1}
			if _, err := Fetch(t.Context(), opts); exitcode.Of(err) != exitcode.Conflict || !strings.Contains(err.Error(), "--replace") {
				t.Errorf("got %v, want a conflict", err)
			}
			if got := left(t, dir); got != before {
				t.Errorf("a refused fetch changed the folder: %q, was %q", got, before)
			}
			opts.Replace = true
			if _, err := Fetch(t.Context(), opts); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that breaks off in the middle leaves the checkout that was there.
func TestFetchThatBreaksOffLeavesTheOldCheckout(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	ws := t.TempDir()
	opts := Options{URL: s.address(), Revision: o.first, Workspace: ws, Path: "source", Depth: 1}
	if _, err := Fetch(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	for name, deny := range map[string]func(*http.Request) bool{
		"at once":          func(*http.Request) bool { return true },
		"asked for a pack": func(r *http.Request) bool { return r.Method == http.MethodPost },
	} {
		t.Run(name, func(t *testing.T) {
			s.deny = deny
			defer func() { s.deny = nil }()
			opts.Revision = "main"
			if _, err := Fetch(t.Context(), opts); exitcode.Of(err) != exitcode.IO {
				t.Errorf("got %v, want an error of the network", err)
			}
			if got := runGit(t, filepath.Join(ws, "source"), "rev-parse", "HEAD"); got != o.first {
				t.Errorf("HEAD is %s, want the old %s", got, o.first)
			}
			if got := left(t, ws); got != "source" {
				t.Errorf("the workspace holds %q", got)
			}
		})
	}
}

func TestFetchRemovesHalfClonesOfAKilledOne(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	ws := t.TempDir()
	for _, dir := range []string{".source.fetch-123/.git/objects", ".source.old-9/replaced", ".sourcerer.fetch-1"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: ws, Path: "source", Depth: 1}); err != nil {
		t.Fatal(err)
	}
	if got := left(t, ws); got != ".sourcerer.fetch-1 source" {
		t.Errorf("the workspace holds %q", got)
	}
}

func TestFetchStopsWithItsContext(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	ctx, cancel := context.WithCancel(t.Context())
	s.other = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	ws := t.TempDir()
	if _, err := Fetch(ctx, Options{URL: s.address(), Workspace: ws, Path: "source", Depth: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if got := left(t, ws); got != "" {
		t.Errorf("left %q", got)
	}
}

func TestFetchOpensFilesToTheGroup(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	ws := t.TempDir()
	if err := os.Chmod(ws, 0o775|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: ws, Path: "a/source", Depth: 1}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"a": 0o775, "a/source": 0o775, "a/source/cmd": 0o775, "a/source/README.md": 0o664, "a/source/cmd/run.sh": 0o775,
		"a/source/.git": 0o775, "a/source/.git/HEAD": 0o664, "a/source/.git/objects": 0o775,
	} {
		info, err := os.Stat(filepath.Join(ws, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", name, got, want)
		}
		if info.IsDir() && info.Mode()&fs.ModeSetgid == 0 {
			t.Errorf("%s has lost the group of the volume", name)
		}
	}
}

func TestFetchRefusesLinksThatLeadOut(t *testing.T) {
	for name, c := range map[string]struct {
		links map[string]string
		bad   string // "" for none
	}{
		"absolute":                    {map[string]string{"passwd": "/etc/passwd"}, "passwd"},
		"up and out":                  {map[string]string{"cmd/up": "../../outside"}, "cmd/up"},
		"out by way of another link":  {map[string]string{"cmd/top": "..", "zz": "cmd/top/../outside"}, "zz"},
		"within":                      {map[string]string{"cmd/readme": "../README.md", "dir": "cmd"}, ""},
		"to nothing":                  {map[string]string{"gone": "nothing/here"}, ""},
		"in a circle":                 {map[string]string{"a": "b", "b": "a"}, ""},
		"absolute into the workspace": {map[string]string{"w": "/workspace/shared/source"}, "w"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			for at, to := range c.links {
				if err := os.Symlink(to, filepath.Join(o.dir, at)); err != nil {
					t.Fatal(err)
				}
			}
			o.commit(t, "links")
			s := serve(t, o, false)
			ws := t.TempDir()
			_, err := Fetch(t.Context(), Options{URL: s.address(), Revision: "main", Workspace: ws, Path: "source", Depth: 1})
			if c.bad == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), c.bad+" is a symbolic link") {
				t.Errorf("got %v, want it to name %s", err, c.bad)
			}
			if got := left(t, ws); got != "" {
				t.Errorf("left %q", got)
			}
		})
	}
}

func TestFetchStaysInTheWorkspace(t *testing.T) {
	o := newOrigin(t)
	s := serve(t, o, false)
	for _, path := range []string{"", ".", "..", "../x", "a/../../x", "/abs", ".git", ".git/hooks", "a\nb"} {
		if _, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: path, Depth: 1}); exitcode.Of(err) != exitcode.Usage {
			t.Errorf("path %q: got %v, want a usage error", path, err)
		}
	}
	ws, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link", "link/source"} {
		_, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: ws, Path: path, Depth: 1, Replace: true})
		if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("path %q: got %v, want it refused", path, err)
		}
	}
	if got := left(t, outside); got != "" {
		t.Errorf("written outside of the workspace: %q", got)
	}
}

// Over git:// anybody can answer: what is fetched has to be named by its digest.
func TestFetchOverGitNeedsTheCommit(t *testing.T) {
	o := newOrigin(t)
	address := serveGit(t, o)
	for _, revision := range []string{"", "main", "v1"} {
		if _, err := Fetch(t.Context(), Options{URL: address, Revision: revision, Workspace: t.TempDir(), Path: "source", Depth: 1}); exitcode.Of(err) != exitcode.Usage {
			t.Errorf("revision %q: %v, want a usage error", revision, err)
		}
	}
	for name, opts := range map[string]Options{"as revision": {Revision: o.second}, "beside a branch": {Revision: "main", Commit: o.second}} {
		opts.URL, opts.Workspace, opts.Path, opts.Depth = address, t.TempDir(), "source", 1
		r, err := Fetch(t.Context(), opts)
		if err != nil || r.Commit != o.second {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := Fetch(t.Context(), Options{URL: address, Revision: "main", Commit: o.first, Workspace: t.TempDir(), Path: "source", Depth: 1}); exitcode.Of(err) != exitcode.Integrity {
		t.Errorf("a branch that is elsewhere: %v", err)
	}
}

func TestFetchOfWhatIsNoRepository(t *testing.T) {
	o := newOrigin(t)
	for name, c := range map[string]struct {
		handler http.Handler
		code    int
	}{
		"404":  {http.NotFoundHandler(), exitcode.BadInput},
		"HTML": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) }), exitcode.IO},
		"500":  {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), exitcode.IO},
		"to another scheme": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}), exitcode.IO},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, o, false)
			s.other = c.handler
			_, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: "source", Depth: 1})
			if exitcode.Of(err) != c.code || !strings.Contains(err.Error(), s.address()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want exit code %d in one line with the address", err, c.code)
			}
		})
	}
	runGit(t, o.dir, "checkout", "-q", "--orphan", "empty")
	runGit(t, o.dir, "update-ref", "-d", "refs/heads/main")
	runGit(t, o.dir, "update-ref", "-d", "refs/heads/team/feature")
	runGit(t, o.dir, "tag", "-d", "v1")
	s := serve(t, o, false)
	_, err := Fetch(t.Context(), Options{URL: s.address(), Workspace: t.TempDir(), Path: "source", Depth: 1})
	if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty repository: got %v", err)
	}
}
