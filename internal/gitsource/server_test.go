package gitsource

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// runGit runs the real git, which is the other implementation here, and returns what
// it prints.
func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// origin is a repository that a server offers.
type origin struct {
	dir     string // holds repo.git's work tree
	first   string // commits
	second  string // main
	feature string
	tagged  string // an annotated tag, v1, on the first commit
}

// newOrigin makes a repository of three commits on two branches.
func newOrigin(t *testing.T) origin {
	t.Helper()
	root := t.TempDir()
	o := origin{dir: filepath.Join(root, "repo")}
	runGit(t, root, "init", "-q", "-b", "main", o.dir)
	o.write(t, "README.md", "first\n")
	o.write(t, "cmd/run.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(o.dir, "cmd/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.first = o.commit(t, "first")
	runGit(t, o.dir, "tag", "-a", "v1", "-m", "release")
	o.tagged = runGit(t, o.dir, "rev-parse", "v1")
	o.write(t, "README.md", "second\n")
	o.second = o.commit(t, "second")
	runGit(t, o.dir, "checkout", "-q", "-b", "team/feature", o.first)
	o.write(t, "feature.txt", "feature\n")
	o.feature = o.commit(t, "feature")
	runGit(t, o.dir, "checkout", "-q", "main")
	return o
}

func (o origin) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (o origin) commit(t *testing.T, message string) string {
	t.Helper()
	runGit(t, o.dir, "add", "-A")
	runGit(t, o.dir, "commit", "-q", "-m", message)
	return runGit(t, o.dir, "rev-parse", "HEAD")
}

// gitServer is git's own http-backend.
type gitServer struct {
	*httptest.Server
	user, password string // asked for, unless empty
	requests       atomic.Int64
	deny           func(r *http.Request) bool // answers 500
	other          http.Handler               // answers instead, unless nil
}

func serve(t *testing.T, o origin, withTLS bool) *gitServer {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(runGit(t, "", "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + o.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + t.TempDir()},
	}
	s := &gitServer{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		user, password, _ := r.BasicAuth()
		switch {
		case s.other != nil:
			s.other.ServeHTTP(w, r)
		case s.deny != nil && s.deny(r):
			http.Error(w, "<html>down</html>", http.StatusInternalServerError)
		case s.user != "" && (user != s.user || password != s.password):
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "no", http.StatusUnauthorized)
		default:
			backend.ServeHTTP(w, r)
		}
	})
	if withTLS {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *gitServer) address() string { return s.URL + "/.git" }

func (s *gitServer) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// serveGit is git's own daemon, for one connection after the other.
func serveGit(t *testing.T, o origin) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			cmd := exec.Command("git", "daemon", "--inetd", "--export-all", "--base-path="+o.dir)
			cmd.Stdin, cmd.Stdout = conn, conn
			_ = cmd.Run()
			_ = conn.Close()
		}
	}()
	return "git://" + l.Addr().String() + "/.git"
}
