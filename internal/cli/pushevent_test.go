package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// pushed is a repository of two commits, and the file of a secret.
func pushed(t *testing.T) (dir, secret string, commits []string) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "trunk")
	for _, message := range []string{"one", "two"} {
		git("commit", "-q", "--allow-empty", "-m", message)
		commits = append(commits, git("rev-parse", "HEAD"))
	}
	secret = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, secret, commits
}

func TestPushEventSendsThePushOfTheLastCommit(t *testing.T) {
	dir, secret, commits := pushed(t)
	type payload struct{ Ref, Before, After string }
	var got []payload
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p payload
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		got = append(got, p)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	base := []string{"push-event", "--forge", "github", "--repository", "team/llm", "--secret-file", secret, "--url", server.URL}
	none := pushrun.NoCommit
	for name, test := range map[string]struct {
		args []string
		in   string
		want []payload
	}{
		"nothing is said":    {nil, "", []payload{{"refs/heads/trunk", commits[0], commits[1]}}},
		"the first commit":   {[]string{"--after", "HEAD~1"}, "", []payload{{"refs/heads/trunk", none, commits[0]}}},
		"all of it":          {[]string{"--before", none, "--after", commits[1], "--ref", "refs/heads/new"}, "", []payload{{"refs/heads/new", none, commits[1]}}},
		"a deletion":         {[]string{"--after", none, "--ref", "refs/heads/old"}, "", []payload{{"refs/heads/old", commits[1], none}}},
		"the hook of git":    {[]string{"--post-receive"}, commits[0] + " " + commits[1] + " refs/heads/trunk\n" + none + " " + commits[0] + " refs/tags/v1\n", []payload{{"refs/heads/trunk", commits[0], commits[1]}, {"refs/tags/v1", none, commits[0]}}},
		"a hook for nothing": {[]string{"--post-receive"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			var out, errs bytes.Buffer
			getenv := func(name string) string { return map[string]string{"GIT_DIR": dir}[name] }
			code := Run(t.Context(), Streams{In: strings.NewReader(test.in), Out: &out, Err: &errs, Getenv: getenv, Now: time.Now}, append(append([]string{}, base...), append(test.args, "--output", "json")...))
			var told []pushevent.Told
			if err := json.Unmarshal(out.Bytes(), &told); err != nil || code != 0 || len(told) != len(test.want) || len(got) != len(test.want) {
				t.Fatalf("code %d, %v, %v, %s%s", code, err, got, out.String(), errs.String())
			}
			for i, want := range test.want {
				if got[i] != want || told[i].After != want.After || told[i].Answer.Status != http.StatusAccepted || len(told[i].Delivery) != 36 {
					t.Errorf("got %+v, told %+v, want %+v", got[i], told[i], want)
				}
			}
		})
	}
}

func TestPushEventSaysThatReceivedIsNotStarted(t *testing.T) {
	dir, secret, commits := pushed(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer server.Close()
	out, stderr, code := call(t, nil, "push-event", "--git-dir", dir, "--forge", "gitlab", "--repository", "team/llm", "--secret-file", secret, "--url", server.URL, "--delivery", "d-1")
	if code != 0 || !strings.Contains(out, "Push Hook of refs/heads/trunk: "+server.URL+" received delivery d-1 (202)\n  that is no run yet: ") || !strings.Contains(out, commits[1]) {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
}

func TestPushEventShowsWhatItWouldSend(t *testing.T) {
	dir, secret, commits := pushed(t)
	out, stderr, code := call(t, nil, "push-event", "--git-dir", dir, "--forge", "gitlab", "--repository", "team/llm", "--secret-file", secret, "--dry-run")
	if code != 0 || strings.Contains(out, "s3cret") || !strings.Contains(out, "X-Gitlab-Event: Push Hook\n") || !strings.Contains(out, `"checkout_sha":"`+commits[1]+`"`) {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
}

func TestPushEventRefuses(t *testing.T) {
	dir, secret, _ := pushed(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "no such listener")
	}))
	defer refuses.Close()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	good := map[string]string{"--git-dir": dir, "--forge": "github", "--repository": "team/llm", "--secret-file": secret, "--url": refuses.URL}
	for name, test := range map[string]struct {
		change map[string]string
		more   []string
		code   int
		say    string
	}{
		"no secret":        {map[string]string{"--secret-file": ""}, nil, 2, "give --secret-file"},
		"no forge":         {map[string]string{"--forge": ""}, nil, 2, "say github, gitlab or gitea"},
		"no repository":    {map[string]string{"--repository": ""}, nil, 2, "say owner/name"},
		"no listener":      {map[string]string{"--url": ""}, nil, 2, "url is no address"},
		"no git":           {map[string]string{"--git-dir": t.TempDir()}, nil, 3, "git repository"},
		"no such commit":   {nil, []string{"--before", "HEAD~7"}, 3, "before: "},
		"no attempts":      {nil, []string{"--attempts", "0"}, 2, "more than 0"},
		"two ways to say":  {nil, []string{"--post-receive", "--after", "HEAD"}, 2, "standard input says"},
		"it is refused":    {nil, nil, 1, `status 400: "no such listener"`},
		"nobody is there":  {map[string]string{"--url": down.URL}, []string{"--attempts", "1"}, 4, "nobody took delivery"},
		"a file of notes":  {nil, []string{"--ref", "refs/notes/commits"}, 3, "neither a branch nor a tag"},
		"a short ref name": {nil, []string{"--ref", "main"}, 3, "give it in full"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"push-event"}, test.more...)
			for flag, value := range good {
				if changed, is := test.change[flag]; is {
					value = changed
				}
				args = append(args, flag+"="+value)
			}
			out, stderr, code := call(t, nil, args...)
			if code != test.code || !strings.Contains(stderr, test.say) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr+out, "s3cret") {
				t.Errorf("code %d, want %d; %q%q", code, test.code, out, stderr)
			}
		})
	}
}
