package gitsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// withSubmodule adds a submodule at lib and says its address is url.
func (o origin) withSubmodule(t *testing.T, sub origin, url string) string {
	t.Helper()
	runGit(t, o.dir, "submodule", "add", "-q", sub.dir, "lib")
	runGit(t, filepath.Join(o.dir, "lib"), "checkout", "-q", sub.first)
	runGit(t, o.dir, "config", "-f", ".gitmodules", "submodule.lib.url", url)
	return o.commit(t, "submodule")
}

func TestFetchChecksOutSubmodulesWhenAsked(t *testing.T) {
	sub := newOrigin(t)
	subServer := serve(t, sub, false)
	o := newOrigin(t)
	commit := o.withSubmodule(t, sub, subServer.address())
	s := serve(t, o, false)
	for name, ask := range map[string]bool{"not asked": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			before := subServer.requests.Load()
			r, err := Fetch(t.Context(), Options{URL: s.address(), Revision: commit, Workspace: t.TempDir(), Path: "source", Depth: 1, Submodules: ask})
			if err != nil {
				t.Fatal(err)
			}
			_, err = os.Stat(filepath.Join(r.Path, "lib/README.md"))
			if !ask {
				if err == nil || subServer.requests.Load() != before {
					t.Error("the submodule was asked for")
				}
				return
			}
			if got := read(t, r.Path, "lib/README.md"); got != "first\n" {
				t.Errorf("the submodule's README.md is %q, want that of its first commit", got)
			}
			if got := runGit(t, r.Path, "submodule", "status"); !strings.Contains(got, sub.first) {
				t.Errorf("git says %q, want %s", got, sub.first)
			}
		})
	}
}

func TestFetchResolvesRelativeSubmodules(t *testing.T) {
	sub := newOrigin(t)
	subServer := serve(t, sub, false)
	o := newOrigin(t)
	o.withSubmodule(t, sub, "../sub.git")
	c := clone{from: Address{scheme: schemeHTTPS, host: "example.com", path: "/team/repo.git"}}
	for in, want := range map[string]string{
		"../sub.git":        "https://example.com/team/sub.git",
		"./sub.git":         "https://example.com/team/repo.git/sub.git",
		"../../../../x/y":   "https://example.com/x/y",
		subServer.address(): subServer.address(),
	} {
		if got, err := c.resolve(in); err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestFetchRefusesHostileSubmodules(t *testing.T) {
	sub := newOrigin(t)
	for name, url := range map[string]string{
		"a helper": "ext::sh -c id", "a file": "file://" + sub.dir, "a path": sub.dir, "a flag": "--upload-pack=id", "credentials": "https://a:b@example.com/x",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			commit := o.withSubmodule(t, sub, url)
			s := serve(t, o, false)
			ws := t.TempDir()
			_, err := Fetch(t.Context(), Options{URL: s.address(), Revision: commit, Workspace: ws, Path: "source", Depth: 1, Submodules: true})
			if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), `submodule "lib"`) {
				t.Errorf("got %v, want it refused", err)
			}
			if got := left(t, ws); got != "" {
				t.Errorf("left %q", got)
			}
		})
	}
}

func TestFetchSendsCredentialsToTheHostOfTheRepositoryAlone(t *testing.T) {
	sub := newOrigin(t)
	subServer := serve(t, sub, true)
	subServer.user, subServer.password = "robot", "s3cret"
	o := newOrigin(t)
	commit := o.withSubmodule(t, sub, subServer.address())
	s := serve(t, o, true)
	s.user, s.password = "robot", "s3cret"
	dir := secret(t, map[string]string{"username": "robot", "password": "s3cret"})
	_, err := Fetch(t.Context(), Options{
		URL: s.address(), Revision: commit, Workspace: t.TempDir(), Path: "source", Depth: 1, Submodules: true,
		Credentials: Credentials{BasicAuth: dir}, CABundle: append(s.ca(), subServer.ca()...),
	})
	if err == nil || !strings.Contains(err.Error(), "without credentials") {
		t.Errorf("got %v, want the other host to be asked without credentials", err)
	}
}
