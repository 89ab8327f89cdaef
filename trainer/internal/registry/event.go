package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

// Kinds of events.
const (
	KindPromote  = "promote"
	KindRollback = "rollback"
	KindBlocked  = "blocked" // a candidate that did not pass; moves nothing
)

// Event is one entry of a model's history.
type Event struct {
	Seq     int64  `json:"seq"` // 1, 2, 3, … without gaps
	Kind    string `json:"kind"`
	Model   string `json:"model"`
	Alias   string `json:"alias"`
	Version string `json:"version"` // promoted, rolled back to, or blocked

	// Previous is the version that the alias had before; empty for none.
	Previous string `json:"previous,omitempty"`

	// RollbackTo is where a rollback without a target goes from here: the
	// version before, except that versions that were rolled back are skipped.
	RollbackTo string `json:"rollback_to,omitempty"`

	Time    time.Time `json:"time"`
	Run     string    `json:"run,omitempty"`
	Reasons []string  `json:"reasons,omitempty"`
}

func (e Event) moves(alias string) bool {
	return e.Alias == alias && (e.Kind == KindPromote || e.Kind == KindRollback)
}

const (
	maxEvent   = 1 << 20 // bytes
	readers    = 8       // events read at once
	maxRetries = 20      // lost writes in a row without anybody's progress
)

// parseEvent reads and checks one event.
func parseEvent(raw []byte, model string, seq int64) (Event, error) {
	var e Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return Event{}, fmt.Errorf("%w: not an event: %w", store.ErrIntegrity, err)
	}
	err := errors.Join(checkAlias(e.Model, e.Alias), checkVersion(e.Version))
	switch {
	case err != nil:
	case e.Seq != seq || e.Model != model:
		err = fmt.Errorf("says it is event %d of model %q", e.Seq, e.Model)
	case e.Kind != KindPromote && e.Kind != KindRollback && e.Kind != KindBlocked:
		err = fmt.Errorf("kind %q is unknown", e.Kind)
	case e.Previous != "" && !isDigest(e.Previous), e.RollbackTo != "" && !isDigest(e.RollbackTo):
		err = fmt.Errorf("previous %q or rollback_to %q is no version", e.Previous, e.RollbackTo)
	}
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", store.ErrIntegrity, err)
	}
	return e, nil
}

func (r *Registry) readEvent(ctx context.Context, model string, seq int64) (Event, error) {
	key := eventKey(model, seq)
	raw, _, err := store.ReadAll(ctx, r.store, key, maxEvent)
	if err != nil {
		return Event{}, err
	}
	e, err := parseEvent(raw, model, seq)
	if err != nil {
		return Event{}, fmt.Errorf("history entry %s: %w", key, err)
	}
	return e, nil
}

// readEvents reads the events from first to last, several at once.
func (r *Registry) readEvents(ctx context.Context, model string, first, last int64) ([]Event, error) {
	if first > last {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make([]Event, last-first+1)
	slots := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i := range events {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			e, err := r.readEvent(ctx, model, first+int64(i))
			if errors.Is(err, store.ErrNotFound) {
				// It was listed. This must not look like an alias that was never set.
				err = fmt.Errorf("history of %s: %w: entry %d is listed, but not there", model, store.ErrIntegrity, first+int64(i))
			}
			if err != nil {
				cancel(err) // only the first cause stays
			}
			events[i] = e
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return events, nil
}

// head returns the number of the last event, and refuses a history with gaps.
func (r *Registry) head(ctx context.Context, model string) (int64, error) {
	dir := historyDir(model)
	infos, err := r.store.List(ctx, dir)
	if err != nil {
		return 0, fmt.Errorf("history of %s: %w", model, err)
	}
	for i, info := range infos {
		if want := eventKey(model, int64(i)+1); info.Key != want {
			return 0, fmt.Errorf("history of %s: %w: found %s where %s must be: was an entry removed or a file put there?", model, store.ErrIntegrity, info.Key, want)
		}
	}
	return int64(len(infos)), nil
}

// History returns all events of a model, the oldest first. A model that has
// none has an empty history.
func (r *Registry) History(ctx context.Context, model string) ([]Event, error) {
	if err := checkName("model", model); err != nil {
		return nil, err
	}
	n, err := r.head(ctx, model)
	if err != nil {
		return nil, err
	}
	return r.readEvents(ctx, model, 1, n)
}

// appendEvent writes the event that decide returns as the next one. When
// somebody else took the number it reads what they wrote and asks decide
// again, which may now say that there is nothing to write (false). decide is
// first called without new events.
func (r *Registry) appendEvent(ctx context.Context, model string, head int64, decide func(news []Event) (Event, bool, error)) (Event, bool, error) {
	var news []Event
	for idle := 0; ; {
		e, wanted, err := decide(news)
		if err != nil || !wanted {
			return Event{}, false, err
		}
		e.Seq, e.Model, e.Time = head+1, model, r.now().UTC().Truncate(time.Millisecond)
		body, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			return Event{}, false, err
		}
		_, err = r.store.PutIf(ctx, eventKey(model, e.Seq), append(body, '\n'), "")
		if err == nil {
			return e, true, nil
		}
		if !errors.Is(err, store.ErrLost) {
			return Event{}, false, err
		}
		if news, err = r.newer(ctx, model, head); err != nil {
			return Event{}, false, err
		}
		head += int64(len(news))
		if len(news) > 0 {
			idle = 0
			continue
		}
		// A server may call a race lost while nobody has won yet.
		if idle++; idle > maxRetries {
			return Event{}, false, fmt.Errorf("history of %s: %d writes of entry %d were lost, but nobody else wrote it: %w", model, idle, head+1, store.ErrLost)
		}
		if err := r.sleep(ctx, time.Duration(idle)*10*time.Millisecond); err != nil {
			return Event{}, false, err
		}
	}
}

// newer reads the events after head.
func (r *Registry) newer(ctx context.Context, model string, head int64) ([]Event, error) {
	var events []Event
	for {
		e, err := r.readEvent(ctx, model, head+int64(len(events))+1)
		if errors.Is(err, store.ErrNotFound) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
}
