package pushevent

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Which end of a walk a commit is reachable from.
const (
	wanted = 1 << iota
	excluded
)

// walk goes through history from both ends, newest commits first, as git log A..B
// does: it reads no more of it than that takes.
type walk struct {
	objects storer.EncodedObjectStorer
	from    map[plumbing.Hash]uint8
	queue   []*object.Commit // newest first
}

// between returns the commits that after has and the others do not, parents before
// their children, and whether after has one of the others: all of it may be new.
func between(ctx context.Context, objects storer.EncodedObjectStorer, after plumbing.Hash, others []plumbing.Hash) (commits []*object.Commit, ahead bool, err error) {
	w := &walk{objects: objects, from: map[plumbing.Hash]uint8{}}
	if err := w.reach(after, wanted); err != nil {
		return nil, false, err
	}
	for _, other := range others {
		if err := w.reach(other, excluded); err != nil {
			return nil, false, err
		}
	}
	onlyWanted := func(c *object.Commit) bool { return w.from[c.Hash] == wanted }
	// Of a commit that was listed, it may turn out later that the others have it too:
	// through commits that are no older.
	mayHave := func(c *object.Commit) bool {
		return len(commits) > 0 && !c.Committer.When.Before(commits[len(commits)-1].Committer.When)
	}
	for len(w.queue) > 0 && (slices.ContainsFunc(w.queue, onlyWanted) || mayHave(w.queue[0])) {
		if err := context.Cause(ctx); err != nil {
			return nil, false, err
		}
		c := w.queue[0]
		w.queue = w.queue[1:]
		if onlyWanted(c) {
			commits = append(commits, c)
		}
		for _, parent := range c.ParentHashes {
			err := w.reach(parent, w.from[c.Hash])
			if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
				return nil, false, err // a parent that is not there is where a shallow clone ends
			}
		}
	}
	commits = slices.DeleteFunc(commits, func(c *object.Commit) bool { return !onlyWanted(c) })
	slices.Reverse(commits)
	return parentsFirst(commits), slices.ContainsFunc(others, func(h plumbing.Hash) bool { return w.from[h]&wanted != 0 }), nil
}

// parentsFirst puts commits of one second, or of clocks that differ, in order.
func parentsFirst(commits []*object.Commit) []*object.Commit {
	waiting := map[plumbing.Hash]*object.Commit{}
	for _, c := range commits {
		waiting[c.Hash] = c
	}
	ordered := make([]*object.Commit, 0, len(commits))
	var add func(*object.Commit)
	add = func(c *object.Commit) {
		delete(waiting, c.Hash)
		for _, hash := range c.ParentHashes {
			if parent := waiting[hash]; parent != nil {
				add(parent)
			}
		}
		ordered = append(ordered, c)
	}
	for _, c := range commits {
		if waiting[c.Hash] != nil {
			add(c)
		}
	}
	return ordered
}

// reach notes from where a commit was reached, and queues it when that is news.
func (w *walk) reach(hash plumbing.Hash, from uint8) error {
	if w.from[hash]|from == w.from[hash] {
		return nil
	}
	w.from[hash] |= from
	if slices.ContainsFunc(w.queue, func(c *object.Commit) bool { return c.Hash == hash }) {
		return nil
	}
	commit, err := object.GetCommit(w.objects, hash)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(w.queue, commit, func(queued, c *object.Commit) int {
		if queued.Committer.When.Before(c.Committer.When) {
			return 1
		}
		return -1 // after all of the same second: children were queued first
	})
	w.queue = slices.Insert(w.queue, at, commit)
	return nil
}
