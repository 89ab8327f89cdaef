package deliveries

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// trial is a line of a table.
type trial struct {
	name string
	edit func(*push)                      // before it is signed; nil leaves it as it was recorded
	send func(d *Delivery, secret string) // after that; nil as it is
	by   string                           // what refuses it; empty: a run
	want func(*pushrun.Push)              // what the run says that is not as usual
	only []pushrun.Forge                  // empty: all
}

// Table is for the settings AnyFile: each delivery once, with which run has to come of it.
// It has more deliveries than runs: some are the same push again.
func Table(secrets Secrets) []Delivery {
	return expand(secrets, started(), secret(), events(), refs(), repositories(), commits(), people(), messages(), bodies())
}

// FilesTable is for the settings SomeFiles.
func FilesTable(secrets Secrets) []Delivery { return expand(secrets, files()) }

func expand(secrets Secrets, groups ...[]trial) (all []Delivery) {
	for _, t := range slices.Concat(groups...) {
		for _, forge := range Forges() {
			if len(t.only) > 0 && !slices.Contains(t.only, forge) {
				continue
			}
			all = append(all, t.delivery(forge, secrets[forge]))
		}
	}
	return all
}

func (t trial) delivery(forge pushrun.Forge, secret string) Delivery {
	p := newPush(forge, t.name)
	if t.edit != nil {
		t.edit(p)
	}
	d := Delivery{Name: fmt.Sprintf("%s: %s", forge, t.name), Forge: forge, Header: p.header, Body: p.encode(), By: t.by}
	Sign(&d, secret)
	if t.send != nil {
		t.send(&d, secret)
	}
	if t.by != "" {
		return d
	}
	before, _ := p.body["before"].(string)
	commit, _ := p.body["after"].(string)
	want := pushrun.Push{Forge: forge, Repository: Repository, Branch: Branch, Commit: commit, Before: before, Sender: "ann", Delivery: deliveryID}
	if t.want != nil {
		t.want(&want)
	}
	d.Run = &Run{ShortName + "-" + commit, want}
	return d
}

// only are the forges that sign, and the one that does not.
func signing() []pushrun.Forge { return []pushrun.Forge{pushrun.GitHub, pushrun.Gitea} }
func gitHub() []pushrun.Forge  { return []pushrun.Forge{pushrun.GitHub} }
func gitLab() []pushrun.Forge  { return []pushrun.Forge{pushrun.GitLab} }
func gitea() []pushrun.Forge   { return []pushrun.Forge{pushrun.Gitea} }

const again = "a push that is delivered again"

func started() []trial {
	return []trial{
		{name: "a push"},
		{name: "a push to another branch of the list", edit: func(p *push) { p.ref("refs/heads/" + Release) }, want: func(w *pushrun.Push) { w.Branch = Release }},
		{name: "a new branch", edit: func(p *push) { p.field("before", pushrun.NoCommit); p.field("created", true) }},
		{name: "a new branch without new commits", edit: func(p *push) {
			p.field("before", pushrun.NoCommit)
			p.field("commits", []any{})
			p.count(0)
		}},
		{name: "a forced push", edit: func(p *push) { p.field("forced", true) }},
		{name: "a push back to an older commit", edit: func(p *push) { p.field("commits", []any{}); p.count(0); p.field("forced", true) }},
		{name: "more commits than are listed", edit: func(p *push) { p.count(4711) }},
		{name: again},
		{name: again + ", with its number", edit: func(p *push) { p.commit(CommitOf(p.forge, again)) }},
		{name: again + ", with another number", edit: func(p *push) { p.commit(CommitOf(p.forge, again)); p.delivery("another") }, want: func(w *pushrun.Push) { w.Delivery = "another" }},
		{name: "a commit that comes to another branch too", edit: func(p *push) { p.commit(CommitOf(p.forge, again)); p.ref("refs/heads/" + Release) }, want: func(w *pushrun.Push) { w.Branch = Release }},
		{name: "a body with more than we know", edit: func(p *push) { p.field("new_field", map[string]any{"$(tt.params.url)": []any{1, nil}}) }},
		{name: "a body that claims to have been checked", edit: func(p *push) {
			p.field("extensions", map[string]any{
				"allowed": map[string]any{"repositories": map[string]any{"mallory/evil": map[string]any{"name": "evil", "url": "https://evil.example/"}}},
				"run":     map[string]any{"url": "https://evil.example/"}, "push": map[string]any{"repository": "mallory/evil"},
			})
		}},
		{name: "addresses of somebody else in the body", edit: func(p *push) {
			for _, key := range []string{"clone_url", "html_url", "url", "git_url", "ssh_url", "git_http_url", "git_ssh_url", "http_url"} {
				p.object("repository")[key] = "https://evil.example/"
				if p.forge == pushrun.GitLab {
					p.object("project")[key] = "https://evil.example/"
				}
			}
		}},
		{name: "numbers that are strings where nobody looks", edit: func(p *push) { p.object("repository")["id"] = "1" }},
		{name: "header names in lower case", send: func(d *Delivery, _ string) {
			for name, values := range d.Header.Clone() {
				d.Header[strings.ToLower(name)] = values
				delete(d.Header, name)
			}
		}},
		{name: "of Forgejo", only: gitea(), edit: func(p *push) {
			p.header.Set("X-Forgejo-Event", "push")
			p.header.Set("X-Forgejo-Delivery", "forgejo-1")
			p.header.Del("X-Gitea-Event")
		}, want: func(w *pushrun.Push) { w.Delivery = "forgejo-1" }},
		{name: "of a GitLab that sends no Idempotency-Key", only: gitLab(), edit: func(p *push) { p.header.Del("Idempotency-Key") }, want: func(w *pushrun.Push) { w.Delivery = "13792a34-cac6-4fda-95a8-c58e00a3954e" }},
	}
}

func secret() []trial {
	other := func(d *Delivery) { d.Body = append(d.Body, ' ') }
	return []trial{
		{name: "the wrong secret", by: BySecret, send: func(d *Delivery, s string) { Sign(d, s+"x") }},
		{name: "an empty secret", by: BySecret, send: func(d *Delivery, _ string) { Sign(d, "") }},
		{name: "nothing that proves anything", by: BySecret, send: func(d *Delivery, _ string) {
			for _, name := range []string{"X-Hub-Signature", "X-Hub-Signature-256", "X-Gitlab-Token"} {
				d.Header.Del(name)
			}
		}},
		{name: "the signature of another body", by: BySecret, only: signing(), send: func(d *Delivery, _ string) { other(d) }},
		{name: "only the old signature, by SHA-1", by: BySecret, only: signing(), send: func(d *Delivery, _ string) { d.Header.Del("X-Hub-Signature-256") }},
		{name: "a signature by SHA-1 under the new name", by: BySecret, only: signing(), edit: func(p *push) { p.commit("0123456789abcdef0123456789abcdef01234567") }, send: func(d *Delivery, _ string) {
			d.Body = append(d.Body, ' ')
			d.Header.Set("X-Hub-Signature-256", d.Header.Get("X-Hub-Signature"))
		}},
		{name: "half a signature", by: BySecret, only: signing(), send: func(d *Delivery, _ string) {
			s := d.Header.Get("X-Hub-Signature-256")
			d.Header.Set("X-Hub-Signature-256", s[:len(s)/2])
		}},
		{name: "a signature without its kind", by: BySecret, only: signing(), send: func(d *Delivery, _ string) {
			d.Header.Set("X-Hub-Signature-256", strings.TrimPrefix(d.Header.Get("X-Hub-Signature-256"), "sha256="))
		}},
		{name: "the secret instead of a signature", by: BySecret, only: signing(), send: func(d *Delivery, s string) { d.Header.Set("X-Hub-Signature-256", s) }},
		{name: "a signature instead of the secret", by: BySecret, only: gitLab(), send: func(d *Delivery, s string) {
			as := Delivery{Forge: pushrun.GitHub, Header: d.Header, Body: d.Body}
			Sign(&as, s)
			d.Header.Set("X-Gitlab-Token", d.Header.Get("X-Hub-Signature-256"))
		}},
		// Not a space: HTTP takes those from the ends of a header.
		{name: "the secret with a full stop after it", by: BySecret, only: gitLab(), send: func(d *Delivery, s string) { d.Header.Set("X-Gitlab-Token", s+".") }},
		{name: "headers of Gitea with a signature of GitHub's secret", by: ByPush, only: gitHub(), edit: func(p *push) { p.header.Set("X-Gitea-Event", "push") }},
		{name: "headers of Forgejo with a signature of GitHub's secret", by: ByPush, only: gitHub(), edit: func(p *push) { p.header.Set("X-Forgejo-Event", "push") }},
		{name: "headers of GitHub alone with a signature of Gitea's secret", by: ByPush, only: gitea(), edit: func(p *push) { p.header.Del("X-Gitea-Event") }},
		{name: "GitLab's body with a signature of GitHub's secret", by: ByPush, only: gitHub(), edit: func(p *push) { p.body = payload("gitlab-push.json") }},
		{name: "GitHub's body with GitLab's secret", by: ByPush, only: gitLab(), edit: func(p *push) { p.body = payload("github-push.json") }},
	}
}

func events() []trial {
	event := func(name string) func(*push) {
		return func(p *push) {
			for key := range header(p.forge, "") {
				if strings.HasSuffix(key, "-Event") {
					p.header.Set(key, name)
				}
			}
		}
	}
	return []trial{
		{name: "no event", by: BySecret, edit: func(p *push) {
			for key := range header(p.forge, "") {
				if strings.HasSuffix(key, "-Event") {
					p.header.Del(key)
				}
			}
		}},
		{name: "the event Push", by: BySecret, edit: event("Push")},
		{name: "the event of a tag", by: BySecret, edit: event("Tag Push Hook")},
		{name: "a ping", by: BySecret, only: gitHub(), edit: func(p *push) { event("ping")(p); p.body = payload("github-ping.json") }},
		{name: "a ping that says push", by: ByPush, only: gitHub(), edit: func(p *push) { p.body = payload("github-ping.json") }},
		{name: "a pull request", by: BySecret, only: gitHub(), edit: func(p *push) { event("pull_request")(p); p.body = payload("github-pull-request.json") }},
		{name: "a pull request that says push", by: ByPush, only: gitHub(), edit: func(p *push) { p.body = payload("github-pull-request.json") }},
		{name: "a tag", by: BySecret, only: gitLab(), edit: func(p *push) { event("Tag Push Hook")(p); p.body = payload("gitlab-tag.json") }},
		{name: "a tag that says push", by: ByPush, only: gitLab(), edit: func(p *push) { p.body = payload("gitlab-tag.json") }},
		{name: "a tag whose kind says push", by: ByFilter, only: gitLab(), edit: func(p *push) {
			p.body = payload("gitlab-tag.json")
			p.field("object_kind", "push")
			p.field("event_name", "push")
		}},
		{name: "a hook of the whole instance", by: BySecret, only: gitLab(), edit: event("System Hook")},
		{name: "a merge request", by: BySecret, only: gitLab(), edit: func(p *push) { event("Merge Request Hook")(p); p.body = payload("gitlab-merge-request.json") }},
		{name: "a merge request that says push", by: ByPush, only: gitLab(), edit: func(p *push) { p.body = payload("gitlab-merge-request.json") }},
		{name: "a deletion", by: BySecret, only: gitea(), edit: func(p *push) { event("delete")(p); p.body = payload("gitea-delete.json") }},
		{name: "a deletion that says push", by: ByPush, only: gitea(), edit: func(p *push) { p.body = payload("gitea-delete.json") }},
		{name: "a pull request", by: BySecret, only: gitea(), edit: event("pull_request")},
	}
}
