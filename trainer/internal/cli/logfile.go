package cli

import (
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

const keepLogFlag = "keep-log"

// runLog appends what a stage prints to RUN/logs/VERB.log, where it outlives the
// container: a pod that timed out or was cancelled is deleted with its logs. Until
// the run directory is there it remembers, since a stage must not make a directory
// of a misspelt name.
type runLog struct {
	mu     sync.Mutex
	run    string
	name   string
	header string
	early  []byte
	file   *os.File
	failed bool
}

// maxEarly is what is remembered before there is a directory, in bytes.
const maxEarly = 64 << 10

// keepLog sends what is printed to the log of the run too.
func (a *App) keepLog(cmd *cobra.Command) {
	run, keep := cmd.Flag("run-dir"), cmd.Flag(keepLogFlag)
	if run == nil || run.Value.String() == "" || keep.Value.String() != "true" {
		return
	}
	l := &runLog{run: run.Value.String(), name: cmd.Name() + ".log", header: stage.LogHeader(a.Getenv(envOwner), a.Now())}
	a.Out, a.Err = io.MultiWriter(a.Out, l), io.MultiWriter(a.Err, l)
	a.log = l
}

// Write never fails: what is printed must arrive where it was meant to go first.
func (l *runLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && !l.open() {
		if room := maxEarly - len(l.early); room > 0 {
			l.early = append(l.early, p[:min(len(p), room)]...)
		}
		return len(p), nil
	}
	_, _ = l.file.Write(p)
	return len(p), nil
}

// open opens the log as soon as the run directory is there.
func (l *runLog) open() bool {
	if l.failed {
		return false
	}
	if _, err := os.Stat(l.run); err != nil {
		return false
	}
	dir := filepath.Join(l.run, stage.LogsDir)
	err := atomicfile.MkdirAll(dir)
	if err == nil {
		l.file, err = os.OpenFile(filepath.Join(dir, l.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o664)
	}
	if err != nil {
		l.failed = true // the volume is full or another's: the stage will say it
		return false
	}
	_ = l.file.Chmod(0o664) // whatever the umask says; refused to who is not its owner
	_, _ = l.file.WriteString(l.header)
	_, _ = l.file.Write(l.early)
	l.early = nil
	return true
}

// Close flushes the log.
func (l *runLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && (len(l.early) == 0 || !l.open()) {
		return
	}
	_ = l.file.Sync()
	_ = l.file.Close()
	l.file, l.failed = nil, true
}
