package pause

import (
	"context"
	"time"
)

// For waits on the clock. It ends early with the cause when the context does.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
