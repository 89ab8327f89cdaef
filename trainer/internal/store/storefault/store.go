// Package storefault wraps a store so that it fails where a test wants it.
//
// It is for tests alone; no program imports it.
package storefault

import (
	"context"
	"io"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

// Op names a method of store.Store in the hooks.
type Op string

// The methods that can fail.
const (
	Put   Op = "put"
	PutIf Op = "putif"
	Get   Op = "get"
	Stat  Op = "stat"
	List  Op = "list"
)

// Writes says whether the method changes the store.
func (o Op) Writes() bool { return o == Put || o == PutIf }

// Store is a store with hooks. A hook's error is what the caller gets.
type Store struct {
	store.Store

	// Before runs before the method; after an error the method does not run,
	// as when the server was not reached.
	Before func(op Op, key string) error

	// After runs after a method that succeeded, as when its answer got lost.
	After func(op Op, key string) error
}

var _ store.Store = (*Store)(nil)

func around[T any](s *Store, op Op, key string, call func() (T, error)) (T, error) {
	var none T
	if s.Before != nil {
		if err := s.Before(op, key); err != nil {
			return none, err
		}
	}
	out, err := call()
	if err == nil && s.After != nil {
		err = s.After(op, key)
	}
	if err != nil {
		return none, err
	}
	return out, nil
}

// Put is store.Store's, with hooks; so are the others.
func (s *Store) Put(ctx context.Context, key string, r io.ReadSeeker) (store.Info, error) {
	return around(s, Put, key, func() (store.Info, error) { return s.Store.Put(ctx, key, r) })
}

// PutIf is store.Store's, with hooks.
func (s *Store) PutIf(ctx context.Context, key string, body []byte, prevETag string) (store.Info, error) {
	return around(s, PutIf, key, func() (store.Info, error) { return s.Store.PutIf(ctx, key, body, prevETag) })
}

// Get is store.Store's, with hooks.
func (s *Store) Get(ctx context.Context, key string, w io.Writer) (store.Info, error) {
	return around(s, Get, key, func() (store.Info, error) { return s.Store.Get(ctx, key, w) })
}

// Stat is store.Store's, with hooks.
func (s *Store) Stat(ctx context.Context, key string) (store.Info, error) {
	return around(s, Stat, key, func() (store.Info, error) { return s.Store.Stat(ctx, key) })
}

// List is store.Store's, with hooks.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Info, error) {
	return around(s, List, prefix, func() ([]store.Info, error) { return s.Store.List(ctx, prefix) })
}
