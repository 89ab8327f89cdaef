package stage

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// RunFile names the run that a directory belongs to.
const RunFile = "run.json"

const runSchema = "trainyard.run/v1"

var runIDPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}$`)

type runFile struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
}

// checkRun refuses a directory that is not there: a stage that reads what others
// wrote must not make one of a misspelt name.
func checkRun(dir string) error {
	if dir == "" {
		return errNoRunDir()
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return exitcode.Errorf(exitcode.BadInput, "run directory %s does not exist: run prepare first", dir)
	}
	return nil
}

func errNoRunDir() error { return exitcode.Errorf(exitcode.Usage, "no run directory: set --run-dir") }

// ClaimRun makes dir the directory of the run id, or checks that it is already.
// An empty id takes the one that the directory has, or its name. A directory of
// another run is refused: what it holds would be taken for this run's.
func ClaimRun(dir, id string) (string, error) {
	if dir == "" {
		return "", errNoRunDir()
	}
	path := filepath.Join(dir, RunFile)
	have, err := readRun(path)
	switch {
	case err == nil && id != "" && id != have:
		return "", exitcode.Errorf(exitcode.BadInput, "%s: the directory is of run %q, not %q: use another directory", path, have, id)
	case err == nil:
		return have, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if id == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", exitcode.Errorf(exitcode.IO, "run directory %s: %w", dir, err)
		}
		id = filepath.Base(abs)
	}
	if !runIDPattern.MatchString(id) {
		return "", exitcode.Errorf(exitcode.Usage, "run id is %q: want up to 128 letters, digits, dots, dashes and underscores, set by --run-id", id)
	}
	if err := atomicfile.MkdirAll(dir); err != nil {
		return "", exitcode.Errorf(exitcode.IO, "run directory: %w", err)
	}
	if err := atomicfile.WriteJSON(path, runFile{runSchema, id}); err != nil {
		return "", exitcode.Errorf(exitcode.IO, "run directory: %w", err)
	}
	return id, nil
}

func readRun(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", exitcode.Errorf(exitcode.IO, "run directory: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", exitcode.Errorf(exitcode.IO, "%s: %w", path, err)
	}
	var r runFile
	if err := json.Unmarshal(b, &r); err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "%s: %w", path, err)
	}
	if r.Schema != runSchema || !runIDPattern.MatchString(r.ID) {
		return "", exitcode.Errorf(exitcode.BadInput, "%s: schema %q and id %q are none of a run", path, r.Schema, r.ID)
	}
	return r.ID, nil
}

// LogsDir holds what the stages of a run printed, where that is kept.
const LogsDir = "logs"
