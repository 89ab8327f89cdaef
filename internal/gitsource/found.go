package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// found says what lies in Path, which somebody else put there: HEAD's commit where
// it is a git checkout. It is verified when no tracked file differs from that commit
// and no other file is there. Otherwise nobody can say which commit was built:
// "unknown" stands for it where there is no repository, and "-modified" follows it
// where files differ.
func found(o Options) (Result, error) {
	p, err := newPlace(o.Workspace, o.Path)
	if err != nil {
		return Result{}, fmt.Errorf("source: %w", err)
	}
	entries, err := os.ReadDir(p.dir())
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return Result{}, exitcode.Errorf(exitcode.BadInput, "source: nothing lies in %s: give the address of a repository, or put source there", p.dir())
	case err != nil:
		return Result{}, explain(p.dir(), err)
	}
	r := Result{Path: p.dir(), Commit: unknownCommit}
	if err := headOf(&r, p.dir()); err != nil {
		return Result{}, err
	}
	if o.Commit == "" {
		return r, nil
	}
	want, err := ParseCommit(o.Commit)
	if err != nil {
		return Result{}, err
	}
	if !r.Verified || r.Commit != want {
		return Result{}, exitcode.Errorf(exitcode.Integrity, "source: %s is %s, not commit %s as asked for", p.dir(), r.Commit, want)
	}
	return r, nil
}

const unknownCommit = "unknown"

// headOf looks up commit and origin of a checkout.
func headOf(r *Result, dir string) error {
	repo, err := git.PlainOpen(dir)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil
	}
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "source: %s/.git: %w", dir, err)
	}
	head, err := repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil // nothing was committed yet
	}
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "source: HEAD of %s: %w", dir, err)
	}
	r.Commit = head.Hash().String()
	if from, err := ParseAddress(originOf(repo), false); err == nil {
		r.URL = from.String()
	}
	w, err := repo.Worktree()
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "source: %s: %w", dir, err)
	}
	status, err := w.Status()
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "source: compare %s with its commit: %w", dir, err)
	}
	if r.Verified = status.IsClean(); !r.Verified {
		r.Commit += "-modified"
	}
	return nil
}
