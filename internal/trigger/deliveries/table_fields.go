package deliveries

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// value is one that is no text.
type value struct {
	what string
	is   any
}

func wrong() []value {
	return []value{{"null", nil}, {"a number", 42}, {"true", true}, {"a list", []any{"main"}}, {"an object", map[string]any{"a": "b"}}}
}

func wrongTypes(of string, by string, set func(*push, any)) (all []trial) {
	for _, v := range wrong() {
		all = append(all, trial{name: fmt.Sprintf("%s that is %s", of, v.what), by: by, edit: func(p *push) { set(p, v.is) }})
	}
	return all
}

func refs() []trial {
	all := wrongTypes("a ref", ByPush, func(p *push, v any) { p.ref(v) })
	for _, ref := range []string{
		"refs/tags/v1.0.0", "refs/tags/main", "refs/heads/main-x", "refs/heads/mai", "refs/heads/Main", "refs/heads/feature/main",
		"refs/heads/main/", "refs/heads//main", "refs/heads/../heads/main", "refs/heads/refs/heads/main", "heads/main", "main", "", "refs/heads/",
		"refs/pull/1/head", "refs/merge-requests/1/head", "refs/heads/main\n", "refs/heads/main\nrefs/heads/main", " refs/heads/main", "refs/heads/main\x00",
		`refs/heads/main"`, "refs/heads/main'", "refs/heads/$(tt.params.branch)", "refs/heads/main$(params.url)", "refs/heads/main;id", "refs/heads/`id`",
		"refs/heads/main\\", "refs/heads/\u043cain", "refs/heads/ma\u200bin", "refs/heads/.*", "refs/heads/release/1.0.0", "refs/heads/release/1x0",
	} {
		all = append(all, trial{name: fmt.Sprintf("the ref %q", ref), by: ByFilter, edit: func(p *push) { p.ref(ref) }})
	}
	return append(all,
		trial{name: "no ref", by: ByPush, edit: func(p *push) { p.without("ref") }},
		trial{name: "a branch of a million characters", by: ByFilter, edit: func(p *push) { p.ref("refs/heads/" + strings.Repeat("main/", 200_000)) }},
	)
}

func repositories() []trial {
	all := wrongTypes("a repository", ByFilter, func(p *push, v any) { p.repository(v) })
	for _, name := range []string{
		"mallory/trainyard", "trainyard/other", "Trainyard/trainyard", "trainyard/Trainyard", "trainyard/trainyard.git", "trainyard/trainyard/", "/trainyard/trainyard",
		"trainyard", "trainyard/trainyard/../../mallory/evil", "trainyard/trainyard\n", `trainyard/trainyard"`, "trainyard/$(tt.params.repository)", "", "*", "repositories",
		"trainyard/\u0442rainyard", "https://github.com/trainyard/trainyard",
	} {
		all = append(all, trial{name: fmt.Sprintf("the repository %q", name), by: ByFilter, edit: func(p *push) { p.repository(name) }})
	}
	return append(all,
		trial{name: "a repository of a million characters", by: ByFilter, edit: func(p *push) { p.repository(strings.Repeat("trainyard/", 100_000) + "x") }},
		trial{name: "a fork that says so", by: ByFilter, edit: func(p *push) {
			p.repository("mallory/trainyard")
			p.object("repository")["fork"] = true
		}},
		trial{name: "no repository", by: ByPush, edit: func(p *push) { p.without("repository", "project") }},
	)
}

func commits() []trial {
	all := wrongTypes("a commit", ByFilter, func(p *push, v any) { p.commit(v) })
	all = append(all, wrongTypes("a commit before", ByFilter, func(p *push, v any) { p.field("before", v) })...)
	a := strings.Repeat("a", 40)
	for _, sha := range []string{
		pushrun.NoCommit, strings.ToUpper(a), a[1:], a + "a", a[1:] + "g", "main", "HEAD", "", a + "\n", "\n" + a, " " + a[1:], "--upload-pack=" + a[:26],
		"$(tt.params.revision)", `"` + a[2:] + `"`, strings.Repeat("a", 64), "0x" + a[2:], strings.Repeat("\u0430", 40), "../" + a[3:], strings.Repeat(a, 25_000),
	} {
		short := sha
		if len(sha) > 80 {
			short = sha[:10] + "…"
		}
		all = append(all, trial{name: fmt.Sprintf("the commit %q", short), by: ByFilter, edit: func(p *push) { p.commit(sha) }})
		if sha != pushrun.NoCommit {
			all = append(all, trial{name: fmt.Sprintf("the commit %q before", short), by: ByFilter, edit: func(p *push) { p.field("before", sha) }})
		}
	}
	return append(all,
		trial{name: "no commit", by: ByPush, edit: func(p *push) { p.without("after") }},
		trial{name: "no commit before", by: ByPush, edit: func(p *push) { p.without("before") }},
		trial{name: "a deletion as a push", by: ByPush, only: signing(), edit: func(p *push) {
			p.field("after", pushrun.NoCommit)
			p.field("deleted", true)
			p.field("head_commit", nil)
			p.field("commits", []any{})
		}},
		trial{name: "a deletion as a push", by: ByFilter, only: gitLab(), edit: func(p *push) {
			p.field("after", pushrun.NoCommit)
			p.field("checkout_sha", nil)
			p.field("commits", []any{})
			p.count(0)
		}},
		trial{name: "no list of commits", by: ByPush, edit: func(p *push) { p.without("commits") }},
		trial{name: "a list of commits that is null", by: ByPush, edit: func(p *push) { p.field("commits", nil) }},
		trial{name: "a list of commits that is a text", by: ByPush, edit: func(p *push) { p.field("commits", "none") }},
		trial{name: "a list of commits that has numbers", by: ByPush, edit: func(p *push) { p.field("commits", []any{1, 2}) }},
		trial{name: "a commit without files", by: ByPush, edit: func(p *push) { delete(p.head(), "added") }},
	)
}

func people() []trial {
	all := wrongTypes("a sender", ByFilter, func(p *push, v any) { p.sender(v) })
	for _, pair := range [][2]string{
		{"github-actions[bot]", "github-actions[bot]"}, {"renovate[bot]", "renovate[bot]"}, {"project_15_bot_abc", "project_15_bot_abc"}, {"ann@example.com", "ann@example.com"},
		{"ann\nX-Evil: 1", "ann_X-Evil__1"}, {`ann", "evil": "`, "ann____evil____"}, {"$(params.url)", "__params.url_"}, {"$(tt.params.url)", "__tt.params.url_"}, {"$(uid)", "__uid_"},
		{"$(context.pipelineRun.name)", "__context.pipelineRun.name_"}, {`ann\`, "ann_"}, {"\u00c4nne \U0001f600", "_nne__"}, {"", ""}, {"<b>&ann</b>", "_b__ann__b_"},
		{strings.Repeat("a", 5000), strings.Repeat("a", 100)}, {"a\u2028b\x00c", "a_b_c"}, {"true", "true"}, {"42", "42"}, {"null", "null"},
	} {
		all = append(all, trial{name: fmt.Sprintf("the sender %.40q", pair[0]), edit: func(p *push) { p.sender(pair[0]) }, want: func(w *pushrun.Push) { w.Sender = pair[1] }})
	}
	for _, pair := range [][2]string{
		{"$(tt.params.url)", "__tt.params.url_"}, {`d", "status": "`, "d____status_:__"}, {"$(uid)", "__uid_"}, {"d\\u0022", "d_u0022"},
		{strings.Repeat("d", 5000), strings.Repeat("d", 100)}, {"\u00e4", "_"}, {"42", "42"},
	} {
		all = append(all, trial{name: fmt.Sprintf("the delivery %.40q", pair[0]), edit: func(p *push) { p.delivery(pair[0]) }, want: func(w *pushrun.Push) { w.Delivery = pair[1] }})
	}
	return append(all,
		trial{name: "no sender", by: ByPush, edit: func(p *push) { p.without("sender", "user_username") }},
		trial{name: "no number of the delivery", edit: func(p *push) {
			for _, name := range []string{"X-GitHub-Delivery", "X-Gitea-Delivery", "Idempotency-Key", "X-Gitlab-Event-UUID"} {
				p.header.Del(name)
			}
		}, want: func(w *pushrun.Push) { w.Delivery = "" }},
	)
}

func messages() (all []trial) {
	for _, message := range []string{"[skip ci]", "[ci skip]", "[skip train]", "[train skip]", "Fix a word [skip ci]", "Fix a word\n\n[skip train]\n", "[SKIP CI]", "[Skip Train] Fix"} {
		all = append(all, trial{name: fmt.Sprintf("the message %q", message), by: ByFilter, edit: func(p *push) { p.message(message) }})
	}
	for _, message := range []string{
		"", "skip ci", "[skip]", "[skip-ci]", "[skip tests]", "[skip\nci]", `Say "hello" to $(params.url) and $(tt.params.commit)`, "'; drop table runs; --", "\u00c4\u2028\x00\U0001f600",
		strings.Repeat("All work and no play. ", 20_000), "{{revision}} ${HOME} `id`",
	} {
		all = append(all, trial{name: fmt.Sprintf("the message %.60q", message), edit: func(p *push) { p.message(message) }})
	}
	for _, v := range wrong() {
		all = append(all, trial{name: "a message that is " + v.what, by: ByFilter, only: signing(), edit: func(p *push) { p.message(v.is) }})
		all = append(all, trial{name: "a message that is " + v.what, by: ByPush, only: gitLab(), edit: func(p *push) { p.message(v.is) }})
	}
	return append(all,
		trial{name: "a skip in an older commit", edit: func(p *push) {
			older := map[string]any{"id": CommitOf(p.forge, "older"), "message": "Work [skip ci]", "added": []any{"a"}, "modified": []any{}, "removed": []any{}}
			p.field("commits", append([]any{older}, p.body["commits"].([]any)...))
			p.count(len(p.commits()))
		}},
		trial{name: "no head commit", by: ByPush, only: signing(), edit: func(p *push) { p.without("head_commit") }},
		trial{name: "a head commit that is null", by: ByPush, only: signing(), edit: func(p *push) { p.field("head_commit", nil) }},
	)
}

func bodies() []trial {
	body := func(text string) func(*Delivery, string) {
		return func(d *Delivery, secret string) { d.Body = []byte(text); Sign(d, secret) }
	}
	all := []trial{
		{name: "no body", by: ByListener, send: body("")},
		{name: "a body that is no JSON", by: ByListener, send: body("refs/heads/main")},
		{name: "a body that is null", by: ByPush, send: body("null")},
		{name: "a body that is a list", by: ByListener, send: body("[]")},
		{name: "a body that is a text", by: ByListener, send: body(`"push"`)},
		{name: "a body that is empty", by: ByPush, send: body("{}")},
		{name: "a body that ends early", by: ByListener, send: func(d *Delivery, s string) { d.Body = d.Body[:len(d.Body)/2]; Sign(d, s) }},
		{name: "a body with something behind it", by: ByListener, send: func(d *Delivery, s string) { d.Body = append(d.Body, "{}"...); Sign(d, s) }},
		{name: "a body that is nested too deep", by: ByListener, send: body(`{"ref":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}")},
		{name: "a form", by: ByListener, send: func(d *Delivery, s string) {
			d.Body = []byte("payload=" + url.QueryEscape(string(d.Body)))
			d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			Sign(d, s)
		}},
		{name: "JSON that is said to be a form", by: BySecret, only: signing(), send: func(d *Delivery, _ string) { d.Header.Set("Content-Type", "application/x-www-form-urlencoded") }},
		{name: "fields in capitals", by: ByPush, send: func(d *Delivery, s string) {
			d.Body = []byte(regexp.MustCompile(`"[a-z_]+":`).ReplaceAllStringFunc(string(d.Body), strings.ToUpper))
			Sign(d, s)
		}},
	}
	return all
}
