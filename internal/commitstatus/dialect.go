package commitstatus

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// dialect is how one kind of forge wants to be spoken to.
type dialect struct {
	name         string
	limit        int                 // characters of a description
	addressLimit int                 // bytes of a target_url
	characters   func(string) string // leaves those that the forge takes
	states       map[State]string
	path         func(pushrun.Push) (string, error) // below the base address, escaped
	authorize    func(h http.Header, token string)
	body         func(s Status, state string, p pushrun.Push) any
	// settled says of a refusal that the forge knows the state already.
	settled func(code int, message string) bool
	// permission is what a token needs.
	permission string
}

// statusBody is what GitHub, and Gitea after it, take.
type statusBody struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// gitlabBody is GitLab's own form.
type gitlabBody struct {
	State       string `json:"state"`
	Ref         string `json:"ref"` // without it GitLab takes any branch that has the commit
	Name        string `json:"name"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
}

func dialectOf(forge pushrun.Forge) dialect {
	as := func(s Status, state string, _ pushrun.Push) any {
		return statusBody{State: state, TargetURL: s.TargetURL, Description: s.Description, Context: s.Context}
	}
	four := map[State]string{Pending: "pending", Running: "pending", Success: "success", Failure: "failure", Error: "error", Cancelled: "error"}
	never := func(int, string) bool { return false }
	same := func(text string) string { return text }
	switch forge {
	case pushrun.GitLab:
		return dialect{
			name: "GitLab", limit: 255, addressLimit: 255, characters: same,
			states: map[State]string{Pending: "pending", Running: "running", Success: "success", Failure: "failed", Error: "failed", Cancelled: "canceled"},
			path: func(p pushrun.Push) (string, error) {
				return "/api/v4/projects/" + url.PathEscape(p.Repository) + "/statuses/" + p.Commit, nil
			},
			authorize: func(h http.Header, token string) { h.Set("PRIVATE-TOKEN", token) },
			body: func(s Status, state string, p pushrun.Push) any {
				return gitlabBody{State: state, Ref: p.Branch, Name: s.Context, TargetURL: s.TargetURL, Description: s.Description}
			},
			settled: func(code int, message string) bool {
				return code == http.StatusBadRequest && strings.Contains(message, "Cannot transition status")
			},
			permission: "scope api, and in the project role Developer, or on a protected branch a role that may push or merge there",
		}
	case pushrun.Gitea:
		return dialect{
			name: "Gitea",
			// Gitea keeps any text; more than this nobody reads at a commit.
			limit: 500, addressLimit: 2000, characters: same,
			states:     four,
			path:       ownerAndName("/api/v1/repos/"),
			authorize:  func(h http.Header, token string) { h.Set("Authorization", "token "+token) },
			body:       as,
			settled:    never,
			permission: "scope write:repository, of an account that may write to the repository",
		}
	}
	return dialect{
		name:  "GitHub",
		limit: 140, addressLimit: 2000,
		// GitHub: "description doesn't accept 4-byte Unicode".
		characters: narrow,
		states:     four,
		path:       ownerAndName("/repos/"),
		authorize: func(h http.Header, token string) {
			h.Set("Accept", "application/vnd.github+json")
			h.Set("X-GitHub-Api-Version", "2022-11-28")
			h.Set("Authorization", "Bearer "+token)
		},
		body:       as,
		settled:    never,
		permission: "repository permission Commit statuses: read and write, for this repository",
	}
}

// ownerAndName is the path of forges whose repositories have no deeper groups.
func ownerAndName(prefix string) func(pushrun.Push) (string, error) {
	return func(p pushrun.Push) (string, error) {
		owner, name, ok := strings.Cut(p.Repository, "/")
		if !ok || strings.Contains(name, "/") {
			return "", fmt.Errorf("repository %q is not owner/name", p.Repository)
		}
		return prefix + url.PathEscape(owner) + "/" + url.PathEscape(name) + "/statuses/" + p.Commit, nil
	}
}

// parseBase checks the address of a forge's API.
func parseBase(address string, insecure []string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || !isWeb(u) || u.RawQuery != "" || u.Fragment != "":
		// What was given may have a password in it: it is not repeated.
		return nil, exitcode.Errorf(exitcode.Usage, "the address of a forge is not https:// and a host, without user, password and query")
	case u.Scheme == "http" && !contains(insecure, u.Host):
		return nil, exitcode.Errorf(exitcode.Usage, "%s://%s would carry the token in plain text: use https, or allow it by --insecure-http %s", u.Scheme, u.Host, u.Host)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func contains(hosts []string, host string) bool {
	for _, h := range hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}
