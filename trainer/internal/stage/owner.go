package stage

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// OwnerFile says which owner works in a run directory, for the time between its
// stages too, when no process holds a lock.
const OwnerFile = "owner.json"

const ownerSchema = "trainyard.owner/v1"

type ownerFile struct {
	Schema string    `json:"schema"`
	Owner  string    `json:"owner"`
	Since  time.Time `json:"since"`
}

var ownerPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/-]{0,252}$`)

// own takes a run directory for an owner, such as the name of a PipelineRun, or
// checks that it has it. A directory of another owner is refused: two that prepare
// and train in turns would judge each other's models. An empty owner asks and takes
// nothing: on one machine the lock is enough.
func own(dir, owner string, takeOver bool, now time.Time) error {
	if owner == "" {
		return nil
	}
	if !ownerPattern.MatchString(owner) {
		return exitcode.Errorf(exitcode.Usage, "owner is %q: want up to 253 letters, digits, dots, dashes and slashes", owner)
	}
	path := filepath.Join(dir, OwnerFile)
	mine := ownerFile{ownerSchema, owner, now.UTC()}
	for tries := 3; tries > 0; tries-- {
		has, err := readOwner(path)
		switch {
		case err == nil && has.Owner == owner:
			return nil
		case err == nil && !takeOver:
			return exitcode.Errorf(exitcode.Conflict, "%s is in use by %s since %s: wait for it or use another run; if it is gone for good, take over its directory (TRAINER_TAKE_OVER=true; in a pipeline, take-over=true)",
				dir, has.Owner, has.Since.Format(time.RFC3339))
		case err == nil:
			return writeOwner(path, mine)
		case !errors.Is(err, fs.ErrNotExist):
			if tries == 1 {
				return err
			}
			time.Sleep(50 * time.Millisecond) // another one is writing it
			continue
		}
		err = createOwner(path, mine)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Another one was faster: look at who.
	}
	return exitcode.Errorf(exitcode.Conflict, "%s changes hands all the time: who works there?", dir)
}

func writeOwner(path string, o ownerFile) error {
	if err := atomicfile.WriteJSON(path, o); err != nil {
		return exitcode.Errorf(exitcode.IO, "owner: %w", err)
	}
	return nil
}

// createOwner makes the file only if there is none: of two that begin at once one
// succeeds. (A link of a finished file would do too, where a volume has links.)
func createOwner(path string, o ownerFile) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o664)
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "owner: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			// A full volume: an empty file would keep everybody out.
			err = exitcode.Errorf(exitcode.IO, "owner: %w", errors.Join(err, os.Remove(path)))
		}
	}()
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return err
	}
	// Undo the umask: the next stage runs as another user of the group. Where the
	// volume refuses, its rules hold.
	_ = f.Chmod(0o664)
	return f.Sync()
}

// otherOwner returns who else has a run directory, "" for nobody. Whoever owns nothing
// is not asked.
func otherOwner(dir, owner string) (string, error) {
	if owner == "" {
		return "", nil
	}
	has, err := readOwner(filepath.Join(dir, OwnerFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && has.Owner == owner {
		return "", nil
	}
	return has.Owner, err
}

// Disown gives a run directory back. That of another owner is left alone.
func Disown(dir, owner string) error {
	if owner == "" {
		return nil
	}
	path := filepath.Join(dir, OwnerFile)
	has, err := readOwner(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if has.Owner != owner {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exitcode.Errorf(exitcode.IO, "owner: %w", err)
	}
	return nil
}

func readOwner(path string) (ownerFile, error) {
	o, err := readWith(path, func(r io.Reader) (*ownerFile, error) { return fromJSON[ownerFile](r) })
	if errors.Is(err, fs.ErrNotExist) {
		return ownerFile{}, err
	}
	if err == nil && (o.Schema != ownerSchema || !ownerPattern.MatchString(o.Owner)) {
		err = errors.New(path + " is of no owner")
	}
	if err != nil {
		return ownerFile{}, exitcode.Errorf(exitcode.BadInput, "owner: %w: remove the file if nobody works there", err)
	}
	return *o, nil
}
