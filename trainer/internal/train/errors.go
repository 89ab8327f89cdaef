package train

import "errors"

var (
	// ErrConfig is wrapped by every error about a Config.
	ErrConfig = errors.New("invalid training configuration")

	// ErrDiverged says that a loss, a gradient or a weight is NaN or infinite.
	// Nothing was saved after it.
	ErrDiverged = errors.New("training diverged")

	// ErrInterrupted says that the context ended before the last step. It is
	// joined with the context's cause, and the work so far is saved.
	ErrInterrupted = errors.New("training interrupted")

	// ErrMismatch says that a checkpoint belongs to another run: another
	// configuration, vocabulary or corpus.
	ErrMismatch = errors.New("checkpoint of another run")

	// ErrCheckpoint says that a checkpoint or a loss history cannot be read.
	ErrCheckpoint = errors.New("unreadable checkpoint")

	// ErrIntegrity says that a file of a checkpoint is not the one that was saved.
	ErrIntegrity = errors.New("checkpoint is damaged")

	// ErrData says that the data cannot be trained on.
	ErrData = errors.New("unusable training data")
)
