package stage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/progress"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// runsDir is the folder of a store for what runs leave, by their names.
const runsDir = "runs/"

// published lists what a run tells about itself, in files and folders.
var published = []string{
	GateReportFile, EvalReportFile, PromoteReportFile, SamplesFile, DataReportFile, QualityReportFile,
	progress.FileName, train.HistoryName, CardFile, RunFile, lineage.Dir, LogsDir,
	ReportFile, // last: who finds it finds the rest
}

// publish copies the reports of a run to the store and returns where the page is.
// They outlive the volume, also those of a run that promoted nothing. Reports of
// the same run from before are replaced.
func publish(ctx context.Context, s store.Store, dir, id string) (string, error) {
	if s == nil {
		return "", exitcode.Errorf(exitcode.Usage, "no store to publish to: set --store")
	}
	root := runsDir + id
	for _, name := range published {
		err := filepath.WalkDir(filepath.Join(dir, name), func(file string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // the run did not get to it
			case err != nil:
				return err
			case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."):
				return nil
			}
			rel, err := filepath.Rel(dir, file)
			if err != nil {
				return err
			}
			_, err = store.Upload(ctx, s, file, path.Join(root, filepath.ToSlash(rel)))
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return "", fromStore("publish", err)
		}
	}
	return strings.TrimSuffix(s.URL(), "/") + "/" + path.Join(root, ReportFile), nil
}
