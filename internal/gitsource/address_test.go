package gitsource

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func TestParseAddressTakesWhatGitHostsPrint(t *testing.T) {
	for in, want := range map[string]string{
		"https://github.com/trainyard/trainyard":       "https://github.com/trainyard/trainyard",
		"https://git.example.com:8443/a/b.git":         "https://git.example.com:8443/a/b.git",
		"http://172.30.77.200:3000/a/b.git":            "http://172.30.77.200:3000/a/b.git",
		"git://172.30.77.201/repo":                     "git://172.30.77.201/repo",
		"http://[fd00::1]:3000/a/b.git":                "http://[fd00::1]:3000/a/b.git",
		"ssh://git@github.com/a/b.git":                 "ssh://git@github.com/a/b.git",
		"ssh://git.example.com:2222/a/b":               "ssh://git.example.com:2222/a/b",
		"git@github.com:a/b.git":                       "ssh://git@github.com/a/b.git",
		"http://git-server.trainyard.svc/llm/repo.git": "http://git-server.trainyard.svc/llm/repo.git",
	} {
		a, err := ParseAddress(in, false)
		if err != nil || a.String() != want {
			t.Errorf("%s: got %s, %v, want %s", in, a, err, want)
		}
	}
	if a, err := ParseAddress("file:///srv/repo", true); err != nil || a.String() != "file:///srv/repo" {
		t.Errorf("file:// where it is allowed: got %s, %v", a, err)
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":                   "",
		"a flag":                    "--upload-pack=touch /tmp/x",
		"a short flag":              "-oProxyCommand=id",
		"a helper that runs things": "ext::sh -c id",
		"another helper":            "fd::17",
		"a helper before an URL":    "ext::https://example.com/a",
		"a file":                    "file:///etc",
		"a path":                    "/etc",
		"a relative path":           "../repo",
		"git's own with a user":     "git://user@example.com/a",
		"ftp":                       "ftp://example.com/a",
		"a host that is a flag":     "ssh://-oProxyCommand=id/a",
		"a user that is a flag":     "ssh://-oProxyCommand=id@example.com/a",
		"scp with a flag for host":  "git@-oProxyCommand=id:a",
		"a path that is a flag":     "ssh://git@example.com/--upload-pack=x",
		"scp with a flag for path":  "git@example.com:-x",
		"a quote":                   "ssh://git@example.com/a'b",
		"a password":                "https://user:token@example.com/a",
		"a token":                   "https://token@example.com/a",
		"a password for ssh":        "ssh://git:pw@example.com/a",
		"a line break":              "https://example.com/a\nb",
		"a quote that is escaped":   "ssh://git@example.com/a%27b",
		"a line break, escaped":     "https://example.com/a%0ab",
		"a space":                   "https://example.com/a b",
		"no path":                   "https://example.com",
		"only a slash":              "https://example.com/",
		"no host":                   "https:///a",
		"a query":                   "https://example.com/a?service=git-upload-pack",
		"a fragment":                "https://example.com/a#b",
		"a file with a host":        "file://host/a",
		"much too long":             "https://example.com/" + strings.Repeat("a", 3000),
		"no URL at all":             "https://exa mple",
		"scp with a port":           "git@example.com:22:a",
		"a backslash":               `https://example.com\@evil.example/a`,
	} {
		if a, err := ParseAddress(in, strings.HasPrefix(in, "file://host")); exitcode.Of(err) != exitcode.BadInput {
			t.Errorf("%s: %q gave %s, %v, want it refused", name, in, a, err)
		}
	}
}

// Messages are kept in logs, so the secret that somebody put into an address must not
// be in the message that refuses it.
func TestParseAddressKeepsSecretsToItself(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:s3cret@example.com/a":          `"https://***@example.com/a"`,
		"https://s3cret@example.com/a":               `"https://***@example.com/a"`,
		"https://user:s3cret/@x@example.com/a":       `"https://***@example.com/a"`,
		"ssh://git:s3cret@example.com/a":             `"ssh://***@example.com/a"`,
		"ftp://user:s3cret@example.com/a":            `"ftp://***@example.com/a"`,
		"user:s3cret@example.com/a":                  `"***@example.com/a"`,
		"https://user:s3cret@example.com/a b":        `"https://***@example.com/a b"`,
		"https://user:s3cret@example.com/?x=s3cret@": `"https://***@"`,
		"ssh://git@example.com/-a":                   `"ssh://git@example.com/-a"`,
		"git@example.com:-a":                         `"ssh://git@example.com/-a"`,
	} {
		_, err := ParseAddress(in, false)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"https://example.com/a", "git@example.com:a/b", "ssh://git@[::1]:22/a", "ext::sh", "http://a@b/c", "file:///x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, err := ParseAddress(in, false)
		if err != nil {
			return
		}
		out := a.String()
		if strings.ContainsAny(out, "\n\r'\\ ") || out[0] == '-' || strings.Contains(out, "::") && !strings.Contains(out, "[") && strings.HasPrefix(out, "ext") {
			t.Errorf("%q became %q", in, out)
		}
		again, err := ParseAddress(out, false)
		if err != nil || again.String() != out {
			t.Errorf("%q became %q, which is read as %+v, %v", in, out, again, err)
		}
		if again, err := ParseAddress(a.remote(), false); err != nil || again != a {
			t.Errorf("%q is for git %q, which is read as %+v, %v", in, a.remote(), again, err)
		}
	})
}

func TestParseRevision(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	for in, want := range map[string]Revision{
		"": {name: "HEAD"}, "HEAD": {name: "HEAD"}, "main": {name: "main"}, "team/feature-1": {name: "team/feature-1"},
		"refs/pull/7/head": {name: "refs/pull/7/head"}, "v1.2.3": {name: "v1.2.3"}, "müller": {name: "müller"},
		commit: {commit: commit}, strings.ToUpper(commit): {commit: commit},
		commit[:39]: {name: commit[:39]},
	} {
		got, err := ParseRevision(in)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"--upload-pack=x", "-", "a..b", "HEAD~1", "HEAD^", "HEAD@{1}", "@", "a b", "a\nb", "a:b", "+a", "a*", "a?", "[a]", `a\b`,
		"/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", strings.Repeat("a", 256), "\x00", "a\x7f",
	} {
		if got, err := ParseRevision(in); in != "+a" && exitcode.Of(err) != exitcode.BadInput {
			t.Errorf("%q: got %+v, %v, want it refused", in, got, err)
		}
	}
}

// What is taken must be what git takes for the name of a ref.
func TestParseRevisionAgreesWithGit(t *testing.T) {
	dir := t.TempDir()
	for _, in := range []string{"main", "team/feature-1", "v1.2.3", "+a", "a-", "a@b", "müller", "a,b", "a#b", "$(id)", "a;b", "a'b"} {
		if _, err := ParseRevision(in); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		runGit(t, dir, "check-ref-format", "refs/heads/"+in)
	}
}

func FuzzParseRevision(f *testing.F) {
	for _, s := range []string{"", "main", "refs/heads/x", "a..b", "--x", strings.Repeat("a", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		r, err := ParseRevision(in)
		if err != nil {
			return
		}
		if s := r.String(); s == "" || s[0] == '-' || strings.ContainsAny(s, " \n:*?[\\^~") {
			t.Errorf("%q became %q", in, s)
		}
	})
}

func FuzzCredentialFor(f *testing.F) {
	f.Add([]byte("https://robot:pw@example.com\n"))
	f.Add([]byte("# nothing\n\nhttp://x@y\n"))
	a, err := ParseAddress("https://example.com/a", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		if _, err := credentialFor(lines, a); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", lines, err)
		}
	})
}
