package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

// Pointer is what an alias file holds.
type Pointer struct {
	Model   string `json:"model"`
	Alias   string `json:"alias"`
	Version string `json:"version"`
	Path    string `json:"path"` // folder of the version in the store

	// Previous is where a rollback without a target goes; empty for nowhere.
	Previous string `json:"previous,omitempty"`

	Seq   int64     `json:"seq"` // of the event that moved the alias here
	Moved time.Time `json:"moved"`
}

func pointerOf(e Event) Pointer {
	return Pointer{Model: e.Model, Alias: e.Alias, Version: e.Version, Path: versionDir(e.Model, e.Version),
		Previous: e.RollbackTo, Seq: e.Seq, Moved: e.Time}
}

// Get returns what an alias points at, even when the alias file is behind the
// history. store.ErrNotFound means that the store is there and the alias never
// was set.
func (r *Registry) Get(ctx context.Context, model, alias string) (Pointer, error) {
	if err := checkAlias(model, alias); err != nil {
		return Pointer{}, err
	}
	st, err := r.load(ctx, model, alias)
	if err != nil {
		return Pointer{}, fmt.Errorf("alias %s of model %s: %w", alias, model, err)
	}
	if st.last.Seq == 0 {
		return Pointer{}, fmt.Errorf("alias %s of model %s was never set: %w", alias, model, store.ErrNotFound)
	}
	return pointerOf(st.last), nil
}

// Aliases returns all aliases of a model by name.
func (r *Registry) Aliases(ctx context.Context, model string) (map[string]Pointer, error) {
	events, err := r.History(ctx, model)
	if err != nil {
		return nil, err
	}
	out := map[string]Pointer{}
	for _, e := range events {
		if e.moves(e.Alias) {
			out[e.Alias] = pointerOf(e)
		}
	}
	return out, nil
}

// Resolve turns an alias or a version into a version.
func (r *Registry) Resolve(ctx context.Context, model, ref string) (string, error) {
	if isDigest(ref) {
		return ref, nil
	}
	p, err := r.Get(ctx, model, ref)
	return p.Version, err
}

// aliasState is what is known of an alias at one moment.
type aliasState struct {
	head int64 // of the history
	last Event // that moved the alias; Seq 0: none did
}

func (s *aliasState) apply(alias string, news []Event) {
	for _, e := range news {
		if e.moves(alias) {
			s.last = e
		}
	}
}

// load reads the alias file and the events since. The file is only a shortcut
// into the history and is checked against it.
func (r *Registry) load(ctx context.Context, model, alias string) (aliasState, error) {
	// The file before the history, which then must have the file's event.
	p, _, err := r.readPointer(ctx, model, alias)
	if err != nil {
		return aliasState{}, err
	}
	head, err := r.head(ctx, model)
	if err != nil {
		return aliasState{}, err
	}
	if p.Seq > head {
		return aliasState{}, fmt.Errorf("%w: %s was moved by event %d, but the history ends at %d: entries are missing", store.ErrIntegrity, aliasKey(model, alias), p.Seq, head)
	}
	events, err := r.readEvents(ctx, model, max(p.Seq, 1), head)
	if err != nil {
		return aliasState{}, err
	}
	if p.Seq > 0 && (!events[0].moves(alias) || events[0].Version != p.Version) {
		return aliasState{}, fmt.Errorf("%w: %s says version %s, event %d says %s of %s to %s: the file was edited; remove it to use the history",
			store.ErrIntegrity, aliasKey(model, alias), p.Version, p.Seq, events[0].Kind, events[0].Alias, events[0].Version)
	}
	st := aliasState{head: head}
	st.apply(alias, events)
	return st, nil
}

// readPointer returns the alias file and its ETag; both empty without one. A
// file that cannot be read as a pointer is treated as one of long ago: the
// history knows better, and the next move replaces it.
func (r *Registry) readPointer(ctx context.Context, model, alias string) (Pointer, string, error) {
	raw, info, err := store.ReadAll(ctx, r.store, aliasKey(model, alias), maxEvent)
	if errors.Is(err, store.ErrNotFound) {
		return Pointer{}, "", nil
	}
	if err != nil {
		return Pointer{}, "", err
	}
	return parsePointer(raw, model, alias), info.ETag, nil
}

func parsePointer(raw []byte, model, alias string) Pointer {
	var p Pointer
	if err := json.Unmarshal(raw, &p); err != nil || p.Model != model || p.Alias != alias || p.Seq < 1 || !isDigest(p.Version) {
		return Pointer{}
	}
	return p
}

// point brings the alias file up to event e, unless it is there already or
// further. It only ever moves forward.
func (r *Registry) point(ctx context.Context, e Event) error {
	key := aliasKey(e.Model, e.Alias)
	body, err := json.MarshalIndent(pointerOf(e), "", "  ")
	if err != nil {
		return err
	}
	lastETag := ""
	for idle := 0; ; {
		p, etag, err := r.readPointer(ctx, e.Model, e.Alias)
		if err != nil {
			return err
		}
		if p.Seq >= e.Seq {
			return nil
		}
		_, err = r.store.PutIf(ctx, key, append(body, '\n'), etag)
		if !errors.Is(err, store.ErrLost) {
			return err
		}
		if etag != lastETag {
			lastETag, idle = etag, 0
		}
		if idle++; idle > maxRetries {
			return err
		}
		if err := r.sleep(ctx, time.Duration(idle)*5*time.Millisecond); err != nil {
			return err
		}
	}
}
