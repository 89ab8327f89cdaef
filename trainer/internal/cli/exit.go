package cli

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/generate"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
	"github.com/trainyard/trainyard/trainer/internal/serve"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// codeOf maps an error to the exit code of the process: a signal first, then a
// code that the error carries, then the sentinels, then what the system said.
func codeOf(err error) int {
	var signal exitcode.SignalError
	var coded *exitcode.Error
	switch {
	case err == nil:
		return exitcode.OK
	case errors.As(err, &signal):
		return signal.Code()
	case errors.As(err, &coded):
		return coded.Code
	}
	for _, s := range sentinels() {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	var path *fs.PathError
	var number syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitcode.BadInput // something that was named is not there
	case errors.As(err, &path), errors.As(err, &number):
		return exitcode.IO
	}
	return exitcode.Failed
}

type sentinel struct {
	err  error
	code int
}

// sentinels in the order in which they are looked for: an error may wrap two,
// such as a bad model configuration within a bad model directory.
func sentinels() []sentinel {
	return []sentinel{
		{train.ErrDiverged, exitcode.Diverged}, {optim.ErrDiverged, exitcode.Diverged},
		{store.ErrIntegrity, exitcode.Integrity}, {train.ErrIntegrity, exitcode.Integrity},
		{store.ErrLost, exitcode.Conflict},
		{store.ErrNotFound, exitcode.BadInput},
		{store.ErrNoBucket, exitcode.IO}, {store.ErrDenied, exitcode.IO}, {store.ErrUnconditional, exitcode.IO},
		{train.ErrMismatch, exitcode.BadInput}, {train.ErrCheckpoint, exitcode.BadInput}, {train.ErrData, exitcode.BadInput},
		{dataset.ErrMeta, exitcode.BadInput}, {hf.ErrModel, exitcode.BadInput}, {safetensors.ErrFormat, exitcode.BadInput},
		{corpus.ErrQA, exitcode.BadInput}, {bpe.ErrNoText, exitcode.BadInput}, {generate.ErrLogits, exitcode.BadInput},
		{train.ErrConfig, exitcode.Usage}, {gpt.ErrConfig, exitcode.Usage}, {gpt.ErrMemory, exitcode.Usage}, {optim.ErrConfig, exitcode.Usage},
		{kernel.ErrISA, exitcode.Usage}, {generate.ErrOptions, exitcode.Usage}, {serve.ErrOptions, exitcode.Usage},
	}
}
