package progress

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// FileName is the name of the document in a run directory.
const FileName = "progress.json"

// File replaces RUN/progress.json, whole, not more often than it is told to.
type File struct {
	path     string
	throttle throttle
	trouble  once
}

var _ Sink = (*File)(nil)

// NewFile returns the sink of a run directory.
func NewFile(run string, every time.Duration, log *slog.Logger) *File {
	return &File{path: filepath.Join(run, FileName), throttle: throttle{every: every}, trouble: once{log: log}}
}

// Report writes the document.
func (f *File) Report(_ context.Context, s Status) {
	if !f.throttle.pass(s) {
		return
	}
	if err := atomicfile.WriteJSON(f.path, s.Document()); err != nil {
		f.trouble.warn("progress file not written", err)
	}
}

// Close does nothing: a report is out when Report returns.
func (f *File) Close() {}
