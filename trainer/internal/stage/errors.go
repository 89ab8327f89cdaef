package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// coded gives an error its exit code by what it wraps, and says which stage it
// stopped. An error that has a code keeps it.
func coded(stage string, err error) error {
	if err == nil {
		return nil
	}
	var have *exitcode.Error
	var path *fs.PathError
	var signal exitcode.SignalError
	code := exitcode.BadInput
	switch {
	case errors.As(err, &signal):
		return err // it has the code of the signal
	case errors.As(err, &have):
		code = have.Code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err // the signal that ended it has the code
	case errors.Is(err, evaluate.ErrNotFinite):
		code = exitcode.Diverged
	case errors.Is(err, store.ErrIntegrity):
		code = exitcode.Integrity
	case errors.Is(err, store.ErrLost), errors.Is(err, registry.ErrConflict):
		code = exitcode.Conflict
	case errors.Is(err, store.ErrNotFound), errors.Is(err, registry.ErrNoPrevious):
		code = exitcode.BadInput
	case errors.Is(err, fs.ErrNotExist):
		code = exitcode.BadInput
	case errors.As(err, &path):
		code = exitcode.IO
	}
	return exitcode.Errorf(code, "%s: %w", stage, err)
}

// fromStore is coded for errors of a store: what nothing else is known of is a
// fault of the store, not of the input.
func fromStore(stage string, err error) error {
	if err == nil {
		return nil
	}
	var have *exitcode.Error
	for _, known := range []error{store.ErrIntegrity, store.ErrLost, store.ErrNotFound, registry.ErrConflict, registry.ErrNoPrevious, context.Canceled} {
		if errors.Is(err, known) || errors.As(err, &have) {
			return coded(stage, err)
		}
	}
	return exitcode.Errorf(exitcode.IO, "%s: %w", stage, err)
}

// counted is "1 reason", "2 reasons".
func counted[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

var _ evaluate.Scorer = (*gpt.Session)(nil)
