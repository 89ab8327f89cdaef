package pushevent

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushrun"
)

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
	// maxUpdates and maxLine bound what a hook reads: git pushes thousands of refs in
	// one go when it mirrors.
	maxUpdates = 10000
	maxLine    = 4096
)

// Update says which way a push moved one ref.
type Update struct {
	Before string `json:"before"` // commit that it was at, pushrun.NoCommit for a new ref
	After  string `json:"after"`  // commit or tag that it is at, pushrun.NoCommit for one that is gone
	Ref    string `json:"ref"`    // refs/heads/main
}

// Created says that the ref is new.
func (u Update) Created() bool { return u.Before == pushrun.NoCommit }

// Deleted says that the ref is gone.
func (u Update) Deleted() bool { return u.After == pushrun.NoCommit }

// told says whether forges tell of this ref: of branches and tags they do.
func (u Update) told() bool {
	return strings.HasPrefix(u.Ref, branches) || strings.HasPrefix(u.Ref, tags)
}

// short is the name of the branch or tag.
func (u Update) short() string {
	return strings.TrimPrefix(strings.TrimPrefix(u.Ref, branches), tags)
}

// kind is branch or tag.
func (u Update) kind() string {
	if strings.HasPrefix(u.Ref, tags) {
		return "tag"
	}
	return "branch"
}

var (
	digits  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	refForm = regexp.MustCompile(`^refs/[^\x00-\x20\x7f~^:?*[\\]+$`)
)

// check says what is wrong with an update.
func (u Update) check() error {
	switch {
	case !digits.MatchString(u.Before):
		return fmt.Errorf("%.80q is no commit of 40 digits", u.Before)
	case !digits.MatchString(u.After):
		return fmt.Errorf("%.80q is no commit of 40 digits", u.After)
	case u.Created() && u.Deleted():
		return fmt.Errorf("%.80q was nowhere and is nowhere", u.Ref)
	case !refForm.MatchString(u.Ref):
		return fmt.Errorf("%.80q is no ref: give it in full, refs/heads/main", u.Ref)
	}
	return nil
}

// ReadUpdates reads what git's post-receive hook gets on its standard input: lines
// of the old object, the new one, and the ref. Refs of which forges tell nobody
// (refs/notes/ and the like) are left out.
func ReadUpdates(r io.Reader) ([]Update, error) {
	var updates []Update
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if n > maxUpdates {
			return nil, exitcode.Errorf(exitcode.BadInput, "standard input: more than %d refs in one push", maxUpdates)
		}
		fields := strings.SplitN(lines.Text(), " ", 3)
		if len(fields) != 3 {
			return nil, exitcode.Errorf(exitcode.BadInput, "standard input, line %d: %.80q: want the old commit, the new one and the ref, as git's post-receive hook gets them", n, lines.Text())
		}
		u := Update{Before: fields[0], After: fields[1], Ref: fields[2]}
		if err := u.check(); err != nil {
			return nil, exitcode.Errorf(exitcode.BadInput, "standard input, line %d: %w", n, err)
		}
		if u.told() {
			updates = append(updates, u)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "standard input: %w", err)
	}
	return updates, nil
}
