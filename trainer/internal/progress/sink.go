package progress

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Sink is told how far the training is. It never fails: what goes wrong is its
// own business.
type Sink interface {
	Report(ctx context.Context, s Status)
	// Close waits, for a bounded time, until the last status is out.
	Close()
}

// Sinks reports to several.
type Sinks []Sink

// Report tells each sink.
func (ss Sinks) Report(ctx context.Context, s Status) {
	for _, k := range ss {
		k.Report(ctx, s)
	}
}

// Close closes each sink.
func (ss Sinks) Close() {
	for _, k := range ss {
		k.Close()
	}
}

// throttle lets a status through when the last one is old enough. Evaluations
// wait like the rest: the next status carries them too. The final one never waits.
type throttle struct {
	every time.Duration
	last  time.Time
}

func (t *throttle) pass(s Status) bool {
	if !s.Final && !t.last.IsZero() && s.Time.Sub(t.last) < t.every {
		return false
	}
	t.last = s.Time
	return true
}

// once logs the first of a row of equal troubles.
type once struct {
	log  *slog.Logger
	mu   sync.Mutex
	said bool
}

func (o *once) warn(msg string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.said {
		o.said = true
		o.log.Warn(msg+"; training goes on", "error", err)
	}
}
