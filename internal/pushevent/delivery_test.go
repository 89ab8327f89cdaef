package pushevent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	"github.com/tektoncd/triggers/pkg/interceptors/gitlab"

	"context"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
)

const deliveryID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

func deliver(t *testing.T, forge pushrun.Forge, r repo, u pushevent.Update, limit int) (pushevent.Delivery, map[string]any) {
	t.Helper()
	change, err := read(t, r, u, limit)
	if err != nil {
		t.Fatal(err)
	}
	d, err := pushevent.New(pushevent.Origin{Forge: forge, Repository: "team/llm", Sender: "ann", DefaultBranch: "main"}, change, []byte("s3cret"), deliveryID)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(d.Body, &body); err != nil {
		t.Fatal(err)
	}
	return d, body
}

// at returns what a payload has at a path such as commits.0.added.
func at(body any, path string) any {
	for _, key := range strings.Split(path, ".") {
		switch of := body.(type) {
		case map[string]any:
			value, has := of[key]
			if !has {
				return "nothing is called " + key
			}
			body = value
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(of) {
				return "nothing is at " + key
			}
			body = of[i]
		default:
			return fmt.Sprintf("%v has no %s", of, key)
		}
	}
	if list, is := body.([]any); is && len(list) == 0 {
		return "[]"
	}
	return body
}

func texts(of ...string) []any {
	var out []any
	for _, s := range of {
		out = append(out, s)
	}
	return out
}

func TestPayloadsHaveTheShapesOfTheForges(t *testing.T) {
	s := newStory(t)
	push := pushevent.Update{Before: s.first, After: s.renamed, Ref: "refs/heads/main"}
	gone := pushevent.Update{Before: s.side, After: none, Ref: "refs/heads/side"}
	tag := pushevent.Update{Before: none, After: s.tag, Ref: "refs/tags/v1"}
	tests := map[string]struct {
		forge  pushrun.Forge
		update pushevent.Update
		want   map[string]any
	}{
		"github push": {pushrun.GitHub, push, map[string]any{
			"ref": "refs/heads/main", "before": s.first, "after": s.renamed, "created": false, "deleted": false, "forced": false, "base_ref": nil,
			"compare":          "https://github.com/team/llm/compare/" + s.first[:12] + "..." + s.renamed[:12],
			"commits.0.id":     s.renamed,
			"commits.0.added":  texts("trainer/new\tname.go"),
			"commits.0.author": map[string]any{"name": "Ann Author", "email": "ann@example.com"},

			"commits.0.modified": texts("README.md"), "commits.0.removed": texts("trainer/main.go", "trainer/old name.go"),
			"commits.0.message": "Rename", "commits.0.timestamp": "2026-11-30T12:00:00+02:00", "commits.0.distinct": true,
			"head_commit.id": s.renamed, "repository.full_name": "team/llm", "repository.name": "llm", "repository.owner.login": "team",
			"repository.clone_url": "https://github.com/team/llm.git", "repository.html_url": "https://github.com/team/llm", "repository.default_branch": "main",
			"sender.login": "ann", "pusher.name": "ann",
		}},
		"github force push": {pushrun.GitHub, pushevent.Update{Before: s.merged, After: s.rewritten, Ref: "refs/heads/main"}, map[string]any{
			"forced": true, "commits.0.id": s.rewritten,
		}},
		"github new branch": {pushrun.GitHub, pushevent.Update{Before: none, After: s.merged, Ref: "refs/heads/new"}, map[string]any{
			"created": true, "forced": false, "commits": "[]", "head_commit.id": s.merged, "base_ref": "refs/heads/main", "before": none,
		}},
		"github deletion": {pushrun.GitHub, gone, map[string]any{
			"deleted": true, "commits": "[]", "head_commit": nil, "after": none, "before": s.side,
		}},
		"github tag": {pushrun.GitHub, tag, map[string]any{
			"ref": "refs/tags/v1", "after": s.tag, "head_commit.id": s.renamed, "commits": "[]", "created": true,
		}},
		"gitlab push": {pushrun.GitLab, push, map[string]any{
			"object_kind": "push", "event_name": "push", "ref": "refs/heads/main", "before": s.first, "after": s.renamed, "checkout_sha": s.renamed,
			"user_username": "ann", "user_name": "ann", "project.path_with_namespace": "team/llm", "project.namespace": "team",
			"project.git_http_url": "https://gitlab.com/team/llm.git", "project.default_branch": "main", "total_commits_count": float64(1), "ref_protected": true,
			"commits.0.id": s.renamed, "commits.0.title": "Rename", "commits.0.message": "Rename\n", "commits.0.url": "https://gitlab.com/team/llm/-/commit/" + s.renamed,
			"commits.0.added": texts("trainer/new\tname.go"), "commits.0.modified": texts("README.md"), "commits.0.removed": texts("trainer/main.go", "trainer/old name.go"),
		}},
		"gitlab deletion": {pushrun.GitLab, gone, map[string]any{
			"object_kind": "push", "checkout_sha": nil, "after": none, "commits": "[]", "total_commits_count": float64(0),
		}},
		"gitlab tag": {pushrun.GitLab, tag, map[string]any{
			"object_kind": "tag_push", "after": s.tag, "checkout_sha": s.renamed, "message": "Release one\n", "commits": "[]",
		}},
		"gitea push": {pushrun.Gitea, pushevent.Update{Before: s.first, After: s.merged, Ref: "refs/heads/main"}, map[string]any{
			"ref": "refs/heads/main", "before": s.first, "after": s.merged, "total_commits": float64(3), "commits.0.id": s.merged, // the newest first
			"head_commit.id": s.merged, "repository.full_name": "team/llm", "repository.clone_url": "https://gitea.com/team/llm.git",
			"sender.login": "ann", "pusher.username": "ann", "compare_url": "https://gitea.com/team/llm/compare/" + s.first[:12] + "..." + s.merged[:12],
		}},
		"gitea deletion": {pushrun.Gitea, gone, map[string]any{
			"ref": "side", "ref_type": "branch", "pusher_type": "user", "sender.login": "ann", "repository.full_name": "team/llm",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, body := deliver(t, test.forge, s.repo, test.update, 100)
			for path, want := range test.want {
				if diff := cmp.Diff(want, at(body, path)); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
			}
		})
	}
}

func TestHeadersAreThoseOfTheForges(t *testing.T) {
	s := newStory(t)
	push := pushevent.Update{Before: s.first, After: s.renamed, Ref: "refs/heads/main"}
	for name, test := range map[string]struct {
		forge  pushrun.Forge
		update pushevent.Update
		want   map[string]string
		signed []string // headers with the signature in hexadecimal
	}{
		"github": {pushrun.GitHub, push, map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": deliveryID, "Content-Type": "application/json"}, []string{"X-Hub-Signature-256"}},
		"gitlab": {pushrun.GitLab, push, map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "s3cret", "X-Gitlab-Event-UUID": deliveryID, "Idempotency-Key": deliveryID, "Content-Type": "application/json"}, nil},
		"gitlab tag": {pushrun.GitLab, pushevent.Update{Before: none, After: s.tag, Ref: "refs/tags/v1"}, map[string]string{
			"X-Gitlab-Event": "Tag Push Hook",
		}, nil},
		"gitea": {pushrun.Gitea, push, map[string]string{
			"X-Gitea-Event": "push", "X-Gitea-Delivery": deliveryID, "X-Gogs-Event": "push", "X-GitHub-Event": "push", "X-GitHub-Delivery": deliveryID, "Content-Type": "application/json",
		}, []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Gogs-Signature"}},
		"gitea deletion": {pushrun.Gitea, pushevent.Update{Before: s.side, After: none, Ref: "refs/heads/side"}, map[string]string{
			"X-Gitea-Event": "delete", "X-GitHub-Event": "delete",
		}, []string{"X-Hub-Signature-256"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := deliver(t, test.forge, s.repo, test.update, 100)
			for header, want := range test.want {
				if got := d.Header[header]; got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			for _, header := range test.signed {
				if got, want := strings.TrimPrefix(d.Header[header], "sha256="), openssl(t, "sha256", "s3cret", d.Body); got != want {
					t.Errorf("%s: %s, openssl says %s", header, got, want)
				}
			}
			if sha1, sent := d.Header["X-Hub-Signature"]; sent && sha1 != "sha1="+openssl(t, "sha1", "s3cret", d.Body) {
				t.Errorf("X-Hub-Signature: %s", sha1)
			}
		})
	}
}

// openssl is an implementation that is not ours.
func openssl(t *testing.T, algorithm, secret string, body []byte) string {
	t.Helper()
	cmd := exec.Command("openssl", "dgst", "-"+algorithm, "-hmac", secret, "-hex")
	cmd.Stdin = bytes.NewReader(body)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
	return fields[len(fields)-1]
}

type oneSecret struct{ value string }

func (s oneSecret) Get(_ context.Context, namespace string, ref *pb.SecretRef) ([]byte, error) {
	if namespace != "trainyard" || ref.SecretName != "webhook" || ref.SecretKey != "secret" {
		return nil, fmt.Errorf("no Secret %s/%s", namespace, ref.SecretName)
	}
	return []byte(s.value), nil
}

func TestTektonsInterceptorTakesGitLabsPush(t *testing.T) {
	s := newStory(t)
	d, _ := deliver(t, pushrun.GitLab, s.repo, pushevent.Update{Before: s.first, After: s.renamed, Ref: "refs/heads/main"}, 20)
	header := map[string][]string{}
	for name, value := range d.Header {
		header[name] = []string{value}
	}
	for secret, want := range map[string]bool{"s3cret": true, "another": false} {
		answer := gitlab.NewInterceptor(oneSecret{secret}).Process(t.Context(), &pb.InterceptorRequest{
			Body: string(d.Body), Header: header,
			InterceptorParams: map[string]any{"secretRef": map[string]any{"secretName": "webhook", "secretKey": "secret"}, "eventTypes": []string{"Push Hook"}},
			Context:           &pb.TriggerContext{TriggerID: "namespaces/trainyard/triggers/gitlab"},
		})
		if answer.Continue != want {
			t.Errorf("with secret %s: %+v", secret, answer)
		}
	}
}

func TestForgesListOnlySoManyCommits(t *testing.T) {
	r := newRepo(t)
	for i := range 30 {
		r.commit(t, fmt.Sprint(i))
	}
	opened, err := pushevent.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for forge, want := range map[pushrun.Forge]int{pushrun.GitHub: 30, pushrun.GitLab: 20, pushrun.Gitea: 5} {
		teller := pushevent.Teller{Repository: opened, Origin: pushevent.Origin{Forge: forge, Repository: "team/llm"}, Secret: []byte("x")}
		d, told, err := teller.Make(t.Context(), pushevent.Update{Before: none, After: r.head(t), Ref: "refs/heads/main"}, deliveryID)
		var body struct{ Commits []struct{ Message string } }
		if err == nil {
			err = json.Unmarshal(d.Body, &body)
		}
		if err != nil || len(body.Commits) != want || told.Commits != 30 || told.Listed != want {
			t.Errorf("%s: %d commits, %+v, %v", forge, len(body.Commits), told, err)
		}
	}
}

func TestARequestIsShownWithoutItsSecret(t *testing.T) {
	s := newStory(t)
	for _, forge := range []pushrun.Forge{pushrun.GitHub, pushrun.GitLab, pushrun.Gitea} {
		d, _ := deliver(t, forge, s.repo, pushevent.Update{Before: s.first, After: s.renamed, Ref: "refs/heads/main"}, 20)
		var out bytes.Buffer
		if _, err := d.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "s3cret") || !strings.Contains(out.String(), "Content-Type: application/json\n") || !strings.Contains(out.String(), s.renamed) {
			t.Errorf("%s: %s", forge, out.String())
		}
	}
}

func TestOriginsThatAreNoneAreRefused(t *testing.T) {
	for name, o := range map[string]pushevent.Origin{
		"no forge":              {Repository: "team/llm"},
		"another forge":         {Forge: "sourcehut", Repository: "team/llm"},
		"no owner":              {Forge: pushrun.GitHub, Repository: "llm"},
		"a path":                {Forge: pushrun.GitHub, Repository: "team/../llm"},
		"groups at github":      {Forge: pushrun.GitHub, Repository: "a/b/c"},
		"credentials":           {Forge: pushrun.GitHub, Repository: "team/llm", CloneURL: "https://ann:secret@example.com/llm.git"},
		"an address that isn't": {Forge: pushrun.GitHub, Repository: "team/llm", CloneURL: "llm"},
	} {
		if err := o.Check(); exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (pushevent.Origin{Forge: pushrun.GitLab, Repository: "a/b/c"}).Check(); err != nil {
		t.Errorf("groups at gitlab: %v", err)
	}
	if _, err := pushevent.New(pushevent.Origin{Forge: pushrun.GitHub, Repository: "a/b"}, pushevent.Change{}, nil, "a\r\nX-Evil: b"); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("a delivery with a line break: %v", err)
	}
}

func TestASecretIsReadFromAFile(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text, want string
		code       int
	}{
		"plain":         {"abc", "abc", 0},
		"an editor's":   {"abc\n", "abc", 0},
		"Windows'":      {"abc\r\n", "abc", 0},
		"spaces stay":   {" a c ", " a c ", 0},
		"empty":         {"", "", exitcode.BadInput},
		"a line break":  {"\n", "", exitcode.BadInput},
		"two lines":     {"a\nb\n", "", exitcode.BadInput},
		"another file":  {strings.Repeat("x", 70000), "", exitcode.BadInput},
		"not text":      {"a\x00b", "", exitcode.BadInput},
		"two at an end": {"a\n\n", "", exitcode.BadInput},
	} {
		file := filepath.Join(dir, "secret")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := pushevent.ReadSecret(file)
		if string(got) != test.want || exitcode.Of(err) != test.code {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := pushevent.ReadSecret(filepath.Join(dir, "none")); exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("no file: %v", err)
	}
}

func TestDeliveriesHaveUUIDs(t *testing.T) {
	// Of RFC 9562's example of a version 4 UUID, the version and variant bits cleared.
	id, err := pushevent.NewID(bytes.NewReader([]byte{0x91, 0x91, 0x08, 0xf7, 0x52, 0xd1, 0x03, 0x20, 0x1b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48, 0xa8}))
	if err != nil || id != "919108f7-52d1-4320-9bac-f847db4148a8" {
		t.Errorf("%s, %v", id, err)
	}
	if _, err := pushevent.NewID(strings.NewReader("few")); err == nil {
		t.Error("out of few bytes one is made")
	}
}
