package registry

import (
	"context"
	"fmt"
)

// Blocked asks to record a candidate that did not pass.
type Blocked struct {
	Model, Alias string // the alias that it wanted
	Version      string // digest of its model.safetensors; it need not be in the registry
	Run          string
	Reasons      []string
}

// RecordBlocked appends a blocked candidate to the history. The same candidate
// of the same run is recorded once; the second call returns the first event
// and false.
func (r *Registry) RecordBlocked(ctx context.Context, b Blocked) (Event, bool, error) {
	if err := checkAlias(b.Model, b.Alias); err != nil {
		return Event{}, false, err
	}
	if err := checkVersion(b.Version); err != nil {
		return Event{}, false, err
	}
	events, err := r.History(ctx, b.Model)
	if err != nil {
		return Event{}, false, fmt.Errorf("record blocked %s %s: %w", b.Model, b.Version, err)
	}
	var current, known Event
	look := func(events []Event) {
		for _, e := range events {
			if e.moves(b.Alias) {
				current = e
			}
			if e.Kind == KindBlocked && e.Alias == b.Alias && e.Version == b.Version && e.Run == b.Run && b.Run != "" {
				known = e
			}
		}
	}
	look(events)
	e, added, err := r.appendEvent(ctx, b.Model, int64(len(events)), func(news []Event) (Event, bool, error) {
		look(news)
		return Event{Kind: KindBlocked, Alias: b.Alias, Version: b.Version, Previous: current.Version, Run: b.Run, Reasons: b.Reasons}, known.Seq == 0, nil
	})
	if err != nil {
		return Event{}, false, fmt.Errorf("record blocked %s %s: %w", b.Model, b.Version, err)
	}
	if !added {
		e = known
	}
	if current.Seq > 0 {
		if err := r.point(ctx, current); err != nil {
			return e, added, fmt.Errorf("blocked %s %s is event %d, but the file of %s is behind: repeat to repair it: %w", b.Model, b.Version, e.Seq, b.Alias, err)
		}
	}
	return e, added, nil
}
