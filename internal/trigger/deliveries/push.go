package deliveries

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/trainyard/trainyard/internal/pushrun"
)

//go:embed testdata/*.json
var recorded embed.FS

// payload reads a body as a forge sent it.
func payload(file string) map[string]any {
	data, err := recorded.ReadFile("testdata/" + file)
	if err != nil {
		panic(err) // it is part of this program
	}
	var body map[string]any
	if err := json.Unmarshal(data, &body); err != nil {
		panic(err)
	}
	return body
}

// push is a push before it is sent: its fields can be changed by what they mean, so that
// one case serves all forges. A value may be of any type.
type push struct {
	forge  pushrun.Forge
	header http.Header
	body   map[string]any
}

// newPush is what a forge sends of a push to Branch of a commit that no other push has.
func newPush(forge pushrun.Forge, name string) *push {
	p := &push{forge, header(forge, "push"), payload(string(forge) + "-push.json")}
	p.commit(CommitOf(forge, name))
	return p
}

// CommitOf is the commit of a delivery of the table: each has its own.
func CommitOf(forge pushrun.Forge, name string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s\x00%s", forge, name))
	return hex.EncodeToString(sum[:])
}

// deliveryID is the number that header gives.
const deliveryID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

func header(forge pushrun.Forge, event string) http.Header {
	h := http.Header{}
	set := func(name, value string) { h.Set(name, value) } // as a server sees it
	set("Content-Type", "application/json")
	switch forge {
	case pushrun.GitHub:
		set("User-Agent", "GitHub-Hookshot/044aadd")
		set("X-GitHub-Event", event)
		set("X-GitHub-Delivery", deliveryID)
		set("X-GitHub-Hook-ID", "292430182")
		set("X-GitHub-Hook-Installation-Target-ID", "186853002")
		set("X-GitHub-Hook-Installation-Target-Type", "repository")
	case pushrun.GitLab:
		if event == "push" {
			event = "Push Hook"
		}
		set("User-Agent", "GitLab/18.6.0")
		set("X-Gitlab-Event", event)
		set("X-Gitlab-Event-UUID", "13792a34-cac6-4fda-95a8-c58e00a3954e")
		set("X-Gitlab-Webhook-UUID", "6c5c1d0a-8b5e-4b3a-9a53-7b1e2a5f5f10")
		set("X-Gitlab-Instance", "https://gitlab.example.com")
		set("Idempotency-Key", deliveryID)
	case pushrun.Gitea:
		for _, family := range []string{"X-Gitea-", "X-Gogs-", "X-GitHub-"} {
			set(family+"Event", event)
			set(family+"Event-Type", event)
			set(family+"Delivery", deliveryID)
		}
	}
	return h
}

// field changes a field of the body; nil removes nothing, see without.
func (p *push) field(name string, value any) { p.body[name] = value }

func (p *push) without(names ...string) {
	for _, name := range names {
		delete(p.body, name)
	}
}

func (p *push) object(name string) map[string]any {
	o, ok := p.body[name].(map[string]any)
	if !ok {
		panic("no object " + name) // a case that is written wrongly
	}
	return o
}

// ref is where the push went.
func (p *push) ref(value any) { p.field("ref", value) }

// commits are those of the push; the last one is its head.
func (p *push) commits() (all []map[string]any) {
	list, ok := p.body["commits"].([]any)
	if !ok {
		panic("no commits")
	}
	for _, c := range list {
		all = append(all, c.(map[string]any))
	}
	return all
}

func (p *push) head() map[string]any {
	all := p.commits()
	return all[len(all)-1]
}

// heads are the places of the head commit.
func (p *push) heads() []map[string]any {
	all := []map[string]any{p.head()}
	if p.forge != pushrun.GitLab {
		all = append(all, p.object("head_commit"))
	}
	return all
}

// commit is what the branch is at after the push.
func (p *push) commit(value any) {
	p.field("after", value)
	if p.forge == pushrun.GitLab {
		p.field("checkout_sha", value)
	}
	for _, head := range p.heads() {
		head["id"] = value
	}
}

func (p *push) message(value any) {
	for _, head := range p.heads() {
		head["message"] = value
	}
}

// files are those that the push changed, in its head commit alone.
func (p *push) files(names ...string) {
	list := []any{}
	for _, name := range names {
		list = append(list, name)
	}
	for _, c := range append(p.commits(), p.heads()...) {
		c["added"], c["removed"], c["modified"] = []any{}, []any{}, []any{}
	}
	for _, head := range p.heads() {
		head["modified"] = list
	}
}

// count says how many commits there are in all, where the forge says it.
func (p *push) count(n int) {
	switch p.forge {
	case pushrun.GitLab:
		p.field("total_commits_count", n)
	case pushrun.Gitea:
		p.field("total_commits", n)
	}
}

func (p *push) repository(value any) {
	if p.forge == pushrun.GitLab {
		p.object("project")["path_with_namespace"] = value
		return
	}
	p.object("repository")["full_name"] = value
}

func (p *push) sender(value any) {
	if p.forge == pushrun.GitLab {
		p.field("user_username", value)
		return
	}
	p.object("sender")["login"] = value
}

func (p *push) delivery(value string) {
	name := map[pushrun.Forge]string{pushrun.GitHub: "X-GitHub-Delivery", pushrun.GitLab: "Idempotency-Key", pushrun.Gitea: "X-Gitea-Delivery"}[p.forge]
	p.header.Set(name, value)
}

func (p *push) encode() []byte {
	data, err := json.Marshal(p.body)
	if err != nil {
		panic(err)
	}
	return data
}
