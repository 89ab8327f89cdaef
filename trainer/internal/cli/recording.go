package cli

import (
	"cmp"
	"os"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/stage"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// envImage is the reference of the container image that runs, name@sha256:...,
// which only the platform knows.
const envImage = "TRAINER_IMAGE"

// The commit that the image was built from, 40 or 64 hexadecimal digits, and the address
// of its repository: they are not in the image, whose digest follows the code alone.
const (
	envCommit = "TRAINER_COMMIT"
	envSource = "TRAINER_SOURCE"
)

// Whoever runs the stages one after the other, such as a PipelineRun, and whether it
// may take the run directory from another one: see stage.Recording.
const (
	envOwner    = "TRAINER_OWNER"
	envTakeOver = "TRAINER_TAKE_OVER"
)

// recording says who and what works, for the lineage records of the stages.
func (a *App) recording(m machineFlags) stage.Recording {
	isa := ""
	if set, err := kernel.Choose(a.Getenv(kernel.EnvISA)); err == nil {
		isa = string(set.ISA())
	}
	known := lineage.Code{
		Image: a.Getenv(envImage), Repository: a.Getenv(envSource),
		Commit: cmp.Or(a.Getenv(envCommit), a.Build.Commit), Version: a.Build.Version,
	}
	return stage.Recording{
		Now: a.Now, Owner: a.Getenv(envOwner), TakeOver: a.Getenv(envTakeOver) == "true",
		Code: lineage.ThisCode(known, func() (string, error) {
			path, err := os.Executable()
			if err != nil {
				return "", err
			}
			sum, err := train.FileDigest(path)
			return strings.TrimPrefix(sum, "sha256:"), err
		}),
		Host: lineage.ThisHost(m.threads, isa),
	}
}
