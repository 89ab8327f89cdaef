package deliveries

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/pushrun"
)

func files() []trial {
	many := func(n int, file string) []any {
		var all []any
		for i := range n {
			all = append(all, map[string]any{
				"id": fmt.Sprintf("%040x", i), "message": "m", "added": []any{file}, "modified": []any{}, "removed": []any{},
			})
		}
		return all
	}
	// list puts commits before the head.
	list := func(p *push, commits []any) {
		p.files("README.md")
		p.field("commits", append(commits, p.body["commits"].([]any)[len(p.commits())-1]))
		p.count(len(p.commits()))
	}
	all := []trial{
		{name: "files: of the trainer", edit: func(p *push) { p.files("trainer/train.yaml") }},
		{name: "files: one of several", edit: func(p *push) { p.files("README.md", "docs/a.md", "project.toml") }},
		{name: "files: in an older commit", edit: func(p *push) { list(p, many(3, "trainer/a.go")) }},
		{name: "files: one that is gone", edit: func(p *push) { p.files(); p.head()["removed"] = []any{"trainer/a.go"} }},
		{name: "files: one that is new", edit: func(p *push) { p.files(); p.head()["added"] = []any{"trainer/a.go"} }},
		{name: "files: README.md of a new branch", edit: func(p *push) { p.files("README.md"); p.field("before", pushrun.NoCommit) }},
		{name: "files: README.md by force", only: gitHub(), edit: func(p *push) { p.files("README.md"); p.field("forced", true) }},
		{name: "files: README.md, and GitHub does not say whether by force", only: gitHub(), edit: func(p *push) { p.files("README.md"); p.without("forced") }},
		{name: "files: back to an older commit", edit: func(p *push) { p.field("commits", []any{}); p.count(0); p.field("forced", true) }},
		{name: "files: README.md, of more commits than are listed", only: []pushrun.Forge{pushrun.GitLab, pushrun.Gitea}, edit: func(p *push) { p.files("README.md"); p.count(21) }},
		{name: "files: README.md, and it is not said how many commits", only: []pushrun.Forge{pushrun.GitLab, pushrun.Gitea}, edit: func(p *push) {
			p.files("README.md")
			p.without("total_commits", "total_commits_count")
		}},
		{name: "files: README.md, of as many commits as GitHub lists", only: gitHub(), edit: func(p *push) { list(p, many(2047, "README.md")) }},
		{name: "files: README.md, too often to look", edit: func(p *push) { list(p, many(3001, "README.md")) }},
		{name: "files: of the trainer, and skipped", by: ByFilter, edit: func(p *push) { p.files("trainer/train.yaml"); p.message("x [skip train]") }},
		{name: "files: of the trainer, on another branch", by: ByFilter, edit: func(p *push) { p.files("trainer/train.yaml"); p.ref("refs/heads/next") }},
		{name: "files: none that changed", by: ByFilter, edit: func(p *push) { p.files() }},
		{name: "files: README.md in many commits", by: ByFilter, edit: func(p *push) { list(p, many(500, "README.md")) }},
		{name: "files: README.md, and a number", by: ByFilter, edit: func(p *push) { p.files("README.md"); p.head()["added"] = []any{42, nil} }},
	}
	for _, name := range []string{
		"README.md", "docs/trainer/a.md", "Trainer/a.go", "trainer", "README.md\ntrainer/a.go", "project.toml.md", "projectxtoml", "$(params.url)", `"trainer/`, ".trainer/", "\u0442rainer/a.go",
	} {
		all = append(all, trial{name: fmt.Sprintf("files: only %q", name), by: ByFilter, edit: func(p *push) { p.files(name) }})
	}
	return all
}
