package pause_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/pause"
)

func TestForEndsWithTheTime(t *testing.T) {
	began := time.Now()
	if err := pause.For(t.Context(), 20*time.Millisecond); err != nil || time.Since(began) < 20*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestForEndsWithTheContextAndSaysWhy(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := pause.For(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
