package phase

import (
	"path/filepath"

	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
)

// Names of the phases, which are also names of steps.
const (
	Analyze = "analyze"
	Detect  = "detect"
	Restore = "restore"
	Build   = "build"
	Export  = "export"
	Create  = "create"
)

// Names lists the phases in their order, and last the one that is all of them.
func Names() []string { return []string{Analyze, Detect, Restore, Build, Export, Create} }

// Places are the folders and files of a build.
type Places struct {
	Plan   string // folder of the plan
	Layers string // the lifecycle's layers
	App    string // where the source is built
	Report string // file that export leaves
	Bin    string // folder of the lifecycle's programs
}

// command returns the program of a phase, its arguments, and what to add to its
// environment.
func command(name string, f *plan.File, at Places) (path string, args, env []string, err error) {
	program := map[string]string{Analyze: "analyzer", Detect: "detector", Restore: "restorer", Build: "builder", Export: "exporter", Create: "creator"}[name]
	if program == "" {
		return "", nil, nil, exitcode.Errorf(exitcode.Usage, "phase %q: want one of %v", name, Names())
	}
	connected := name != Detect && name != Build // to registries
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("-layers", at.Layers)
	if name == Detect || name == Build || name == Create {
		add("-platform", filepath.Join(at.Plan, plan.PlatformDir))
	}
	if name == Detect || name == Build || name == Create || name == Export {
		add("-app", at.App)
	}
	if (name == Detect || name == Create) && f.Order {
		add("-order", filepath.Join(at.Plan, plan.OrderFile))
	}
	if name == Analyze || name == Create {
		add("-run-image", f.RunImage)
		// The image of before, for layers that have not changed: the name of the new
		// one has its key in it and was never used.
		add("-previous-image", f.Image)
	}
	if connected {
		add("-cache-image", f.CacheImage)
		if builderimage.CompareVersions(f.PlatformAPI, "0.13") >= 0 {
			for _, host := range f.Insecure {
				add("-insecure-registry", host)
			}
		}
	}
	if name == Export || name == Create {
		add("-process-type", f.ProcessType)
		add("-report", at.Report)
		if f.Created != "" {
			env = append(env, "SOURCE_DATE_EPOCH="+f.Created)
		}
	}
	if name == Analyze || name == Export || name == Create {
		args = append(args, f.Build)
	}
	env = append(env, "CNB_PLATFORM_API="+f.PlatformAPI)
	return filepath.Join(at.Bin, program), args, env, nil
}
