package pushevent

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// gitLabToken is the header that has the secret itself.
const gitLabToken = "X-Gitlab-Token"

// GitLab's event, with the fields that its documentation shows:
// https://docs.gitlab.com/user/project/integrations/webhook_events/#push-events.
type gitLabPayload struct {
	ObjectKind        string            `json:"object_kind"`
	EventName         string            `json:"event_name"`
	Before            string            `json:"before"`
	After             string            `json:"after"`
	Ref               string            `json:"ref"`
	RefProtected      bool              `json:"ref_protected"`
	CheckoutSHA       *string           `json:"checkout_sha"`
	Message           *string           `json:"message"`
	UserID            uint32            `json:"user_id"`
	UserName          string            `json:"user_name"`
	UserUsername      string            `json:"user_username"`
	UserEmail         string            `json:"user_email"`
	UserAvatar        *string           `json:"user_avatar"`
	ProjectID         uint32            `json:"project_id"`
	Project           gitLabProject     `json:"project"`
	Commits           []gitLabCommit    `json:"commits"`
	TotalCommitsCount int               `json:"total_commits_count"`
	PushOptions       map[string]string `json:"push_options"`
	Repository        gitLabRepository  `json:"repository"`
}

type gitLabProject struct {
	ID                uint32  `json:"id"`
	Name              string  `json:"name"`
	Description       *string `json:"description"`
	WebURL            string  `json:"web_url"`
	AvatarURL         *string `json:"avatar_url"`
	GitSSHURL         string  `json:"git_ssh_url"`
	GitHTTPURL        string  `json:"git_http_url"`
	Namespace         string  `json:"namespace"`
	VisibilityLevel   int     `json:"visibility_level"`
	PathWithNamespace string  `json:"path_with_namespace"`
	DefaultBranch     string  `json:"default_branch"`
	Homepage          string  `json:"homepage"`
	URL               string  `json:"url"`
	SSHURL            string  `json:"ssh_url"`
	HTTPURL           string  `json:"http_url"`
}

type gitLabRepository struct {
	Name            string  `json:"name"`
	URL             string  `json:"url"`
	Description     *string `json:"description"`
	Homepage        string  `json:"homepage"`
	GitHTTPURL      string  `json:"git_http_url"`
	GitSSHURL       string  `json:"git_ssh_url"`
	VisibilityLevel int     `json:"visibility_level"`
}

type gitLabCommit struct {
	ID        string       `json:"id"`
	Message   string       `json:"message"`
	Title     string       `json:"title"`
	Timestamp string       `json:"timestamp"`
	URL       string       `json:"url"`
	Author    gitLabPerson `json:"author"`
	Added     []string     `json:"added"`
	Modified  []string     `json:"modified"`
	Removed   []string     `json:"removed"`
}

type gitLabPerson struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// gitLabEvent is a push or, of a tag, an event of another kind.
func gitLabEvent(o Origin, c Change) (event string, p gitLabPayload) {
	event, kind := "Push Hook", "push"
	if c.kind() == "tag" {
		event, kind = "Tag Push Hook", "tag_push"
	}
	ssh := "git@" + o.host() + ":" + o.Repository + ".git"
	p = gitLabPayload{
		ObjectKind: kind, EventName: kind, Before: c.Before, After: c.After, Ref: c.Ref, RefProtected: c.short() == o.DefaultBranch,
		UserID: number("account", o.Sender), UserName: o.Sender, UserUsername: o.Sender, UserEmail: o.email(),
		ProjectID: number("repository", o.Repository),
		Project: gitLabProject{
			ID: number("repository", o.Repository), Name: o.name(), WebURL: o.web(), Namespace: o.owner(), PathWithNamespace: o.Repository,
			DefaultBranch: o.DefaultBranch, GitSSHURL: ssh, GitHTTPURL: o.CloneURL, Homepage: o.web(), URL: ssh, SSHURL: ssh, HTTPURL: o.CloneURL,
		},
		Commits: []gitLabCommit{}, TotalCommitsCount: c.Total, PushOptions: map[string]string{},
		Repository: gitLabRepository{Name: o.name(), URL: ssh, Homepage: o.web(), GitHTTPURL: o.CloneURL, GitSSHURL: ssh},
	}
	if c.Head != nil {
		p.CheckoutSHA = &c.Head.ID
	}
	if c.Message != "" {
		p.Message = &c.Message
	}
	for _, commit := range c.Commits {
		p.Commits = append(p.Commits, gitLabCommit{
			ID: commit.ID, Message: commit.Message, Title: commit.title(), Timestamp: commit.When.Format(time.RFC3339),
			URL:    o.web() + "/-/commit/" + commit.ID,
			Author: gitLabPerson(commit.Author),
			Added:  commit.Added, Modified: commit.Modified, Removed: commit.Removed,
		})
	}
	return event, p
}

// gitLabHeader has the secret as it is: GitLab signs nothing with it.
func gitLabHeader(o Origin, d Delivery, secret []byte) map[string]string {
	return map[string]string{
		"User-Agent":            "GitLab/yard",
		"Idempotency-Key":       d.ID,
		"X-Gitlab-Event":        d.Event,
		"X-Gitlab-Event-UUID":   d.ID,
		"X-Gitlab-Webhook-UUID": webhookUUID(o),
		"X-Gitlab-Instance":     strings.TrimSuffix(server(pushrun.GitLab), "/"),
		gitLabToken:             string(secret),
	}
}

// webhookUUID is the number of the webhook itself: always the same one.
func webhookUUID(o Origin) string {
	sum := sha256.Sum256([]byte("webhook\x00" + o.Repository))
	id, err := NewID(bytes.NewReader(sum[:]))
	if err != nil {
		return "" // there are enough bytes
	}
	return id
}
