package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Options say what Fetch does.
type Options struct {
	URL      string // "" takes what lies in Path
	Revision string // commit, branch, tag, HEAD or refs/…; "" is HEAD
	Commit   string // that Revision must turn out to be; "" takes any

	Workspace string // root that nothing is written outside of
	Path      string // of the checkout below Workspace
	Replace   bool   // also what is no checkout of URL

	Depth       int // commits of history; 0 is all
	Submodules  bool
	Credentials Credentials
	CABundle    []byte // PEM, trusted beside the system's
	AllowFile   bool   // file:// addresses
	Logf        func(format string, args ...any)
}

// Result is what lies in Path now.
type Result struct {
	URL      string `json:"url"`    // "" where nobody knows
	Commit   string `json:"commit"` // 40 digits, or what stands for them, see Found
	Path     string `json:"path"`
	Fetched  bool   `json:"fetched"`  // false: it lay there
	Verified bool   `json:"verified"` // Path holds exactly Commit
}

// Fetch makes the checkout. Without a URL it says what lies in Path.
func Fetch(ctx context.Context, o Options) (Result, error) {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.URL == "" {
		return found(o)
	}
	f := &fetching{o: o}
	if err := f.validate(); err != nil {
		return Result{}, fmt.Errorf("fetch: %w", err)
	}
	r, err := f.run(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("fetch %s: %w", f.from, err)
	}
	return r, nil
}

// fetching is one run of Fetch.
type fetching struct {
	o     Options
	from  Address
	rev   Revision
	want  string // commit, "" for any
	place place
}

// validate checks everything that can be checked without asking anybody.
func (f *fetching) validate() error {
	o := &f.o
	var err error
	if f.from, err = ParseAddress(o.URL, o.AllowFile); err != nil {
		return err
	}
	if f.rev, err = ParseRevision(o.Revision); err != nil {
		return err
	}
	f.want = f.rev.commit
	if o.Commit != "" {
		c, err := ParseCommit(o.Commit)
		if err != nil {
			return err
		}
		if f.want != "" && f.want != c {
			return exitcode.Errorf(exitcode.Usage, "revision is %s, commit is %s: which of them?", f.want, c)
		}
		f.want = c
	}
	if f.from.scheme == schemeGit && f.want == "" {
		// Nothing proves who answers; the digest of a commit proves what it is.
		return exitcode.Errorf(exitcode.Usage, "%s: git:// needs a commit in full, since anybody could answer for a branch or a tag", f.from)
	}
	if o.Depth < 0 {
		return exitcode.Errorf(exitcode.Usage, "depth is %d: want 1 or more commits, or 0 for all", o.Depth)
	}
	f.place, err = newPlace(o.Workspace, o.Path)
	return err
}

func (f *fetching) run(ctx context.Context) (Result, error) {
	if err := f.mayReplace(); err != nil {
		return Result{}, err
	}
	if err := f.place.sweep(); err != nil {
		return Result{}, err
	}
	tmp, err := f.place.beside(tempMark)
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(tmp) // nothing is there after replace
	c := clone{from: f.from, credentials: f.o.Credentials, caBundle: f.o.CABundle, depth: f.o.Depth, dir: tmp, logf: f.o.Logf}
	commit, err := c.checkout(ctx, f.rev)
	if err != nil {
		return Result{}, err
	}
	if f.want != "" && commit != f.want {
		return Result{}, exitcode.Errorf(exitcode.Integrity, "%s is commit %s, not %s as asked for: it moved, or it is another repository", f.rev, commit, f.want)
	}
	if f.o.Submodules {
		if err := c.submodules(ctx, maxSubmoduleDepth); err != nil {
			return Result{}, err
		}
	}
	if err := settle(tmp); err != nil {
		return Result{}, err
	}
	if err := f.place.replace(tmp); err != nil {
		return Result{}, err
	}
	return Result{URL: f.from.String(), Commit: commit, Path: f.place.dir(), Fetched: true, Verified: true}, nil
}

// mayReplace refuses to remove what is no earlier checkout of the same repository.
func (f *fetching) mayReplace() error {
	entries, err := os.ReadDir(f.place.dir())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 || f.o.Replace {
		return nil
	}
	if err != nil {
		return explain(f.place.dir(), err)
	}
	was := "no checkout"
	if r, err := git.PlainOpen(f.place.dir()); err == nil {
		if was = originOf(r); was == f.from.remote() {
			return nil
		}
	}
	return exitcode.Errorf(exitcode.Conflict, "%s holds something else already (%s): use another path, or replace it with --replace", f.place.dir(), was)
}

func originOf(r *git.Repository) string {
	remote, err := r.Remote(git.DefaultRemoteName)
	if err != nil || len(remote.Config().URLs) == 0 {
		return "a repository without an origin"
	}
	return remote.Config().URLs[0]
}

// clone makes one repository in a directory.
type clone struct {
	from        Address
	credentials Credentials
	caBundle    []byte
	depth       int
	dir         string
	logf        func(string, ...any)

	repo   *git.Repository
	remote *git.Remote
	auth   transport.AuthMethod
}

// checkout fetches a revision, checks it out and returns its commit.
func (c *clone) checkout(ctx context.Context, rev Revision) (string, error) {
	var err error
	if c.auth, err = c.credentials.auth(c.from); err != nil {
		return "", err
	}
	if c.repo, err = initRepository(c.dir); err != nil {
		return "", exitcode.New(exitcode.IO, err)
	}
	if c.remote, err = c.repo.CreateRemote(&config.RemoteConfig{Name: git.DefaultRemoteName, URLs: []string{c.from.remote()}}); err != nil {
		return "", exitcode.New(exitcode.IO, err)
	}
	hash, err := c.fetch(ctx, rev)
	if err != nil {
		return "", c.explain(err)
	}
	commit, err := c.commitOf(hash)
	if err != nil {
		return "", err
	}
	w, err := c.repo.Worktree()
	if err != nil {
		return "", exitcode.New(exitcode.IO, err)
	}
	if err := w.Checkout(&git.CheckoutOptions{Hash: commit}); err != nil {
		return "", exitcode.New(codeOfCheckout(err), fmt.Errorf("check out %s: %w", commit, err))
	}
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	// What lies there is what was checked out: read it back from the repository.
	head, err := c.repo.Head()
	if err != nil {
		return "", exitcode.New(exitcode.IO, err)
	}
	if head.Hash() != commit {
		return "", exitcode.Errorf(exitcode.Integrity, "checked out %s, but HEAD is %s", commit, head.Hash())
	}
	return commit.String(), nil
}

// codeOfCheckout tells a full disk from a tree with hostile names in it.
func codeOfCheckout(err error) int {
	if code := exitcode.Of(err); code != exitcode.Failed {
		return code
	}
	return exitcode.BadInput
}

// commitOf follows a tag to its commit.
func (c *clone) commitOf(h plumbing.Hash) (plumbing.Hash, error) {
	for range 10 {
		o, err := c.repo.Object(plumbing.AnyObject, h)
		if err != nil {
			return h, exitcode.Errorf(exitcode.IO, "object %s: %w", h, err)
		}
		switch o := o.(type) {
		case *object.Commit:
			return o.Hash, nil
		case *object.Tag:
			h = o.Target
		default:
			return h, exitcode.Errorf(exitcode.BadInput, "%s is a %s, not a commit", h, o.Type())
		}
	}
	return h, exitcode.Errorf(exitcode.BadInput, "%s is a tag of a tag of a tag and so on", h)
}
