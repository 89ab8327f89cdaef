package gitsource

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
)

var (
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)
	hexOnly       = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
)

// Revision is what to check out: a full commit id, or the name of a ref.
type Revision struct {
	commit string // "" for a name
	name   string // HEAD, refs/…, or a branch or tag
}

// String is the revision as it was given.
func (r Revision) String() string {
	if r.commit != "" {
		return r.commit
	}
	return r.name
}

// ParseRevision reads a commit id of 40 digits, a branch, a tag, HEAD or a full
// name below refs/. The empty revision is HEAD. What git's own rules refuse as the
// name of a ref is refused (see git check-ref-format).
func ParseRevision(s string) (Revision, error) {
	if s == "" {
		s = "HEAD"
	}
	if lower := strings.ToLower(s); commitPattern.MatchString(lower) {
		return Revision{commit: lower}, nil
	}
	if why := notARef(s); why != "" {
		return Revision{}, exitcode.Errorf(exitcode.BadInput, "revision %.200q: %s: want a commit of 40 digits, a branch, a tag, HEAD or refs/…", s, why)
	}
	return Revision{name: s}, nil
}

// ParseCommit reads a commit id in full.
func ParseCommit(s string) (string, error) {
	lower := strings.ToLower(s)
	if !commitPattern.MatchString(lower) {
		return "", exitcode.Errorf(exitcode.BadInput, "commit %.200q: want all its 40 hexadecimal digits", s)
	}
	return lower, nil
}

// notARef says why s cannot name a ref.
func notARef(s string) string {
	switch {
	case len(s) > 255:
		return "it is longer than 255 bytes"
	case s[0] == '-':
		return "it looks like a flag"
	case s == "@" || strings.Contains(s, "@{") || strings.Contains(s, ".."):
		return "it is an expression"
	case strings.HasSuffix(s, "."):
		return "it ends with a dot"
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune(`~^:?*[\`, r) {
			return fmt.Sprintf("it has the character %q", r)
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return "a part between slashes is empty, begins with a dot or ends with .lock"
		}
	}
	return ""
}

// candidates are the full names that the revision may mean.
func (r Revision) candidates() []string {
	if r.name == "HEAD" || strings.HasPrefix(r.name, "refs/") {
		return []string{r.name}
	}
	return []string{"refs/heads/" + r.name, "refs/tags/" + r.name}
}

// hint helps with a name that nothing has.
func (r Revision) hint() string {
	if hexOnly.MatchString(r.name) {
		return ": a commit needs all its 40 digits"
	}
	return ""
}
