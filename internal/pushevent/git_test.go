package pushevent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repo is a repository that the git binary makes: the other implementation here.
type repo struct{ dir string }

func newRepo(t *testing.T) repo {
	t.Helper()
	r := repo{filepath.Join(t.TempDir(), "repo")}
	git(t, "", nil, "init", "-q", "-b", "main", r.dir)
	return r
}

func (r repo) git(t *testing.T, args ...string) string {
	t.Helper()
	return git(t, r.dir, nil, args...)
}

func git(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Carl", "GIT_COMMITTER_EMAIL=carl@example.com",
		"GIT_AUTHOR_DATE=2026-11-30T12:00:00+02:00",
	}, env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

func (r repo) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commit commits everything and returns the commit.
func (r repo) commit(t *testing.T, message string) string {
	t.Helper()
	r.git(t, "add", "-A")
	r.git(t, "commit", "-q", "--allow-empty", "-m", message)
	return r.head(t)
}

func (r repo) head(t *testing.T) string { t.Helper(); return r.git(t, "rev-parse", "HEAD") }
