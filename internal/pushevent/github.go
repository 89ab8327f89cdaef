package pushevent

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// GitHub's event, with the fields that its documentation names and listeners read:
// https://docs.github.com/webhooks/webhook-events-and-payloads#push.
type gitHubPayload struct {
	Ref        string           `json:"ref"`
	Before     string           `json:"before"`
	After      string           `json:"after"`
	Repository gitHubRepository `json:"repository"`
	Pusher     gitHubPerson     `json:"pusher"`
	Sender     gitHubAccount    `json:"sender"`
	Created    bool             `json:"created"`
	Deleted    bool             `json:"deleted"`
	Forced     bool             `json:"forced"`
	BaseRef    *string          `json:"base_ref"`
	Compare    string           `json:"compare"`
	Commits    []gitHubCommit   `json:"commits"`
	HeadCommit *gitHubCommit    `json:"head_commit"`
}

type gitHubRepository struct {
	ID            uint32        `json:"id"`
	Name          string        `json:"name"`
	FullName      string        `json:"full_name"`
	Private       bool          `json:"private"`
	Owner         gitHubAccount `json:"owner"`
	HTMLURL       string        `json:"html_url"`
	Description   *string       `json:"description"`
	Fork          bool          `json:"fork"`
	URL           string        `json:"url"`
	GitURL        string        `json:"git_url"`
	SSHURL        string        `json:"ssh_url"`
	CloneURL      string        `json:"clone_url"`
	DefaultBranch string        `json:"default_branch"`
	MasterBranch  string        `json:"master_branch"`
	Archived      bool          `json:"archived"`
	Visibility    string        `json:"visibility"`
}

type gitHubAccount struct {
	Login string `json:"login"`
	ID    uint32 `json:"id"`
	Type  string `json:"type"`
}

type gitHubPerson struct {
	Name     string `json:"name"`
	Email    string `json:"email"`
	Username string `json:"username,omitempty"`
}

type gitHubCommit struct {
	ID        string       `json:"id"`
	TreeID    string       `json:"tree_id"`
	Distinct  bool         `json:"distinct"`
	Message   string       `json:"message"`
	Timestamp string       `json:"timestamp"`
	URL       string       `json:"url"`
	Author    gitHubPerson `json:"author"`
	Committer gitHubPerson `json:"committer"`
	Added     []string     `json:"added"`
	Removed   []string     `json:"removed"`
	Modified  []string     `json:"modified"`
}

func gitHubPush(o Origin, c Change) gitHubPayload {
	p := gitHubPayload{
		Ref: c.Ref, Before: c.Before, After: c.After,
		Created: c.Created(), Deleted: c.Deleted(), Forced: c.Forced,
		Repository: gitHubRepository{
			ID: number("repository", o.Repository), Name: o.name(), FullName: o.Repository,
			Owner:   gitHubAccount{o.owner(), number("account", o.owner()), "Organization"},
			HTMLURL: o.web(), URL: o.web(), CloneURL: o.CloneURL,
			GitURL: "git://" + o.host() + "/" + o.Repository + ".git", SSHURL: "git@" + o.host() + ":" + o.Repository + ".git",
			DefaultBranch: o.DefaultBranch, MasterBranch: o.DefaultBranch, Private: true, Visibility: "private",
		},
		Pusher:  gitHubPerson{Name: o.Sender, Email: o.email()},
		Sender:  gitHubAccount{o.Sender, number("account", o.Sender), "User"},
		Compare: compare(o, c, "/compare/"),
		Commits: []gitHubCommit{},
	}
	if c.Base != "" {
		p.BaseRef = &c.Base
	}
	for _, commit := range c.Commits {
		p.Commits = append(p.Commits, gitHubCommitOf(o, commit, true))
	}
	if c.Head != nil {
		head := gitHubCommitOf(o, *c.Head, c.Total > 0)
		p.HeadCommit = &head
	}
	return p
}

func gitHubCommitOf(o Origin, c Commit, distinct bool) gitHubCommit {
	return gitHubCommit{
		ID: c.ID, TreeID: c.Tree, Distinct: distinct, Message: strings.TrimRight(c.Message, "\n"), Timestamp: c.When.Format(time.RFC3339),
		URL:    o.web() + "/commit/" + c.ID,
		Author: gitHubPerson{Name: c.Author.Name, Email: c.Author.Email}, Committer: gitHubPerson{Name: c.Committer.Name, Email: c.Committer.Email},
		Added: c.Added, Removed: c.Removed, Modified: c.Modified,
	}
}

// compare is the page with all that a push changed.
func compare(o Origin, c Change, path string) string {
	switch {
	case c.Created():
		return o.web() + path + c.short()
	case c.Deleted():
		return o.web() + path + c.Before[:12] + "..." + pushrun.NoCommit[:12]
	}
	return o.web() + path + c.Before[:12] + "..." + c.After[:12]
}

func gitHubHeader(o Origin, d Delivery, secret []byte) map[string]string {
	return map[string]string{
		"User-Agent":                             "GitHub-Hookshot/yard", // the documentation promises what is before the slash
		"Accept":                                 "*/*",
		"X-GitHub-Event":                         d.Event,
		"X-GitHub-Delivery":                      d.ID,
		"X-GitHub-Hook-ID":                       fmt.Sprint(number("hook", o.Repository)),
		"X-GitHub-Hook-Installation-Target-ID":   fmt.Sprint(number("repository", o.Repository)),
		"X-GitHub-Hook-Installation-Target-Type": "repository",
		"X-Hub-Signature":                        "sha1=" + sha1Of(secret, d.Body),
		"X-Hub-Signature-256":                    "sha256=" + sha256Of(secret, d.Body),
	}
}
