package pushevent

import (
	"slices"
	"time"
)

// Gitea's event, which Forgejo's is too: https://docs.gitea.com/usage/webhooks.
type giteaPayload struct {
	Ref          string          `json:"ref"`
	Before       string          `json:"before"`
	After        string          `json:"after"`
	CompareURL   string          `json:"compare_url"`
	Commits      []giteaCommit   `json:"commits"`
	TotalCommits int             `json:"total_commits"`
	HeadCommit   *giteaCommit    `json:"head_commit"`
	Repository   giteaRepository `json:"repository"`
	Pusher       giteaUser       `json:"pusher"`
	Sender       giteaUser       `json:"sender"`
}

// giteaDeletion is what it sends instead when a branch or tag is gone.
type giteaDeletion struct {
	Ref        string          `json:"ref"` // without refs/heads/
	RefType    string          `json:"ref_type"`
	PusherType string          `json:"pusher_type"`
	Repository giteaRepository `json:"repository"`
	Sender     giteaUser       `json:"sender"`
}

type giteaRepository struct {
	ID            uint32    `json:"id"`
	Owner         giteaUser `json:"owner"`
	Name          string    `json:"name"`
	FullName      string    `json:"full_name"`
	Description   string    `json:"description"`
	Empty         bool      `json:"empty"`
	Private       bool      `json:"private"`
	Fork          bool      `json:"fork"`
	HTMLURL       string    `json:"html_url"`
	SSHURL        string    `json:"ssh_url"`
	CloneURL      string    `json:"clone_url"`
	DefaultBranch string    `json:"default_branch"`
}

type giteaUser struct {
	ID       uint32 `json:"id"`
	Login    string `json:"login"`
	FullName string `json:"full_name"`
	Email    string `json:"email"`
	Username string `json:"username"`
}

type giteaCommit struct {
	ID           string      `json:"id"`
	Message      string      `json:"message"`
	URL          string      `json:"url"`
	Author       giteaPerson `json:"author"`
	Committer    giteaPerson `json:"committer"`
	Verification *struct{}   `json:"verification"`
	Timestamp    string      `json:"timestamp"`
	Added        []string    `json:"added"`
	Removed      []string    `json:"removed"`
	Modified     []string    `json:"modified"`
}

type giteaPerson struct {
	Name     string `json:"name"`
	Email    string `json:"email"`
	Username string `json:"username"`
}

func giteaAccount(login, email string) giteaUser {
	return giteaUser{ID: number("account", login), Login: login, Email: email, Username: login}
}

// giteaEvent is a push, or a deletion.
func giteaEvent(o Origin, c Change) (event string, payload any) {
	repository := giteaRepository{
		ID: number("repository", o.Repository), Name: o.name(), FullName: o.Repository, Private: true,
		Owner:   giteaAccount(o.owner(), o.owner()+"@noreply.example.com"),
		HTMLURL: o.web(), SSHURL: "git@" + o.host() + ":" + o.Repository + ".git", CloneURL: o.CloneURL, DefaultBranch: o.DefaultBranch,
	}
	sender := giteaAccount(o.Sender, o.email())
	if c.Deleted() {
		return "delete", giteaDeletion{Ref: c.short(), RefType: c.kind(), PusherType: "user", Repository: repository, Sender: sender}
	}
	p := giteaPayload{
		Ref: c.Ref, Before: c.Before, After: c.After, CompareURL: compare(o, c, "/compare/"),
		Commits: []giteaCommit{}, TotalCommits: c.Total, Repository: repository, Pusher: sender, Sender: sender,
	}
	for _, commit := range slices.Backward(c.Commits) { // the newest first
		p.Commits = append(p.Commits, giteaCommitOf(o, commit))
	}
	if c.Head != nil {
		head := giteaCommitOf(o, *c.Head)
		p.HeadCommit = &head
	}
	return "push", p
}

func giteaCommitOf(o Origin, c Commit) giteaCommit {
	return giteaCommit{
		ID: c.ID, Message: c.Message, URL: o.web() + "/commit/" + c.ID, Timestamp: c.When.Format(time.RFC3339),
		Author: giteaPerson{Name: c.Author.Name, Email: c.Author.Email}, Committer: giteaPerson{Name: c.Committer.Name, Email: c.Committer.Email},
		Added: c.Added, Removed: c.Removed, Modified: c.Modified,
	}
}

// giteaHeader has the names of GitHub and of Gogs too, for listeners that know those.
func giteaHeader(d Delivery, secret []byte) map[string]string {
	signed := sha256Of(secret, d.Body)
	header := map[string]string{
		"User-Agent":          "Go-http-client/1.1",
		"X-Gitea-Signature":   signed,
		"X-Gogs-Signature":    signed,
		"X-Hub-Signature":     "sha1=" + sha1Of(secret, d.Body),
		"X-Hub-Signature-256": "sha256=" + signed,
	}
	for _, family := range []string{"X-Gitea-", "X-Gogs-", "X-GitHub-"} {
		header[family+"Delivery"] = d.ID
		header[family+"Event"] = d.Event
		header[family+"Event-Type"] = d.Event
	}
	return header
}
