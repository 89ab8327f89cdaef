package pushevent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/utils/merkletrie"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Change is what an update did, as the repository has it.
type Change struct {
	Update
	// Forced says that the branch lost commits that it had.
	Forced bool
	// Head is the commit that a branch or tag is at now; nil when it is gone.
	Head *Commit
	// Commits are the newest of those that are new, parents before their children;
	// Total is how many there are.
	Commits []Commit
	Total   int
	// Base is a branch that was there and is at the same commit as a new ref.
	Base string
	// Message is that of an annotated tag.
	Message string
}

// Commit is one commit.
type Commit struct {
	ID, Tree                 string
	Message                  string
	Author, Committer        Person
	When                     time.Time // when it was written
	Added, Modified, Removed []string  // files, against the first parent; a rename is a removal and an addition
}

// Person is who wrote a commit.
type Person struct{ Name, Email string }

// title is the message's first line.
func (c Commit) title() string {
	title, _, _ := strings.Cut(c.Message, "\n")
	return title
}

// Open opens the git repository that a directory is or has in .git.
func Open(dir string) (*git.Repository, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "git repository %s: %w", dir, err)
	}
	return repo, nil
}

// Read finds out what an update did. At most limit commits are listed.
func Read(ctx context.Context, repo *git.Repository, u Update, limit int) (Change, error) {
	c := Change{Update: u}
	if err := u.check(); err != nil {
		return Change{}, exitcode.New(exitcode.BadInput, err)
	}
	if !u.told() {
		return Change{}, exitcode.Errorf(exitcode.BadInput, "ref %.80q is neither a branch nor a tag: forges send no push event for it", u.Ref)
	}
	if u.Deleted() {
		return c, nil
	}
	head, message, err := commitOf(repo, plumbing.NewHash(u.After))
	if err != nil {
		return Change{}, exitcode.Errorf(exitcode.BadInput, "%s is at %s: %w", u.Ref, u.After, err)
	}
	c.Message = message
	if head == nil {
		return c, nil // a tag of a file or folder
	}
	if c.Head, err = describe(ctx, head); err != nil {
		return Change{}, err
	}
	others, err := c.others(repo, head.Hash)
	if err != nil || u.kind() == "tag" {
		return c, err
	}
	commits, ahead, err := between(ctx, repo.Storer, head.Hash, others)
	if err != nil {
		return Change{}, exitcode.Errorf(exitcode.BadInput, "history of %s: %w", u.Ref, err)
	}
	c.Forced = !u.Created() && !ahead
	c.Total = len(commits)
	for _, commit := range commits[max(0, len(commits)-limit):] {
		described, err := describe(ctx, commit)
		if err != nil {
			return Change{}, err
		}
		c.Commits = append(c.Commits, *described)
	}
	return c, nil
}

// others are the commits whose history is no news: that of the branch before, or for
// a new branch that of all others. It notes which of them is the base of a new ref.
func (c *Change) others(repo *git.Repository, head plumbing.Hash) ([]plumbing.Hash, error) {
	if !c.Created() {
		if c.kind() == "tag" {
			return nil, nil
		}
		before, _, err := commitOf(repo, plumbing.NewHash(c.Before))
		if err == nil && before == nil {
			err = errors.New("it is no commit")
		}
		if err != nil {
			return nil, exitcode.Errorf(exitcode.BadInput, "%s was at %s: %w", c.Ref, c.Before, err)
		}
		return []plumbing.Hash{before.Hash}, nil
	}
	refs, err := repo.References()
	if err != nil {
		return nil, err
	}
	var others []plumbing.Hash
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() != plumbing.HashReference || !ref.Name().IsBranch() || ref.Name().String() == c.Ref {
			return nil
		}
		if ref.Hash() == head && (c.Base == "" || ref.Name().String() < c.Base) {
			c.Base = ref.Name().String()
		}
		others = append(others, ref.Hash())
		return nil
	})
	return others, err
}

// commitOf returns a commit, or what an annotated tag is about and its message; no
// commit where that is none.
func commitOf(repo *git.Repository, hash plumbing.Hash) (commit *object.Commit, message string, err error) {
	for range 10 { // tags of tags
		found, err := repo.Object(plumbing.AnyObject, hash)
		if err != nil {
			return nil, "", fmt.Errorf("the repository has no such object: %w", err)
		}
		switch o := found.(type) {
		case *object.Commit:
			return o, message, nil
		case *object.Tag:
			hash = o.Target
			if message == "" {
				message = o.Message
			}
		default:
			return nil, message, nil
		}
	}
	return nil, message, nil
}

// describe reads what an event says of a commit.
func describe(ctx context.Context, c *object.Commit) (*Commit, error) {
	d := &Commit{
		ID: c.Hash.String(), Tree: c.TreeHash.String(), Message: c.Message, When: c.Author.When,
		Author:    Person{c.Author.Name, c.Author.Email},
		Committer: Person{c.Committer.Name, c.Committer.Email},
	}
	fail := func(err error) (*Commit, error) {
		return nil, exitcode.Errorf(exitcode.BadInput, "files of commit %s: %w", d.ID, err)
	}
	after, err := c.Tree()
	if err != nil {
		return fail(err)
	}
	var before *object.Tree // none: all files are new
	if c.NumParents() > 0 {
		parent, err := c.Parent(0)
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound): // where a shallow clone ends
		case err != nil:
			return fail(err)
		default:
			if before, err = parent.Tree(); err != nil {
				return fail(err)
			}
		}
	}
	changes, err := object.DiffTreeContext(ctx, before, after)
	if err != nil {
		return fail(err)
	}
	for _, change := range changes {
		action, err := change.Action()
		if err != nil {
			return fail(err)
		}
		switch action {
		case merkletrie.Insert:
			d.Added = append(d.Added, change.To.Name)
		case merkletrie.Delete:
			d.Removed = append(d.Removed, change.From.Name)
		case merkletrie.Modify:
			d.Modified = append(d.Modified, change.To.Name)
		}
	}
	for _, names := range []*[]string{&d.Added, &d.Modified, &d.Removed} {
		if slices.Sort(*names); *names == nil {
			*names = []string{} // forges write [], not null
		}
	}
	return d, nil
}
