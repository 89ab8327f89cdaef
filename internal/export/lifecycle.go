package export

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/buildpacks/lifecycle/platform/files"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Version is that of the lifecycle whose code is built in; go.mod has the same.
const Version = "0.21.17"

// repository is where a lifecycle that names a commit is from.
const repository = "github.com/buildpacks/lifecycle"

// launcher reads from a builder's lifecycle what an image says of it, and makes sure
// that the same code in here gives the same image.
func launcher(ctx context.Context, bin, platformAPI string) (files.LauncherMetadata, error) {
	path := filepath.Join(bin, "exporter")
	cmd := exec.CommandContext(ctx, path, "-version")
	// Without it the exporter says nothing at all.
	cmd.Env = []string{"CNB_PLATFORM_API=" + platformAPI}
	out, err := cmd.Output()
	if err != nil {
		return files.LauncherMetadata{}, exitcode.Errorf(exitcode.BadInput, "ask %s for its version: %w", path, err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return files.LauncherMetadata{}, exitcode.Errorf(exitcode.BadInput, "ask which Go made %s: %w", path, err)
	}
	version, commit, _ := strings.Cut(strings.TrimSpace(string(out)), "+")
	if err := same(version, info.GoVersion, runtime.Version()); err != nil {
		return files.LauncherMetadata{}, err
	}
	m := files.LauncherMetadata{Version: version}
	if commit != "" {
		m.Source.Git = files.GitMetadata{Repository: repository, Commit: commit}
	}
	return m, nil
}

// same refuses a lifecycle that may make another image than the one in here: of
// another version, or of another minor version of Go, whose compression may differ.
func same(version, theirGo, ourGo string) error {
	const remedy = "an image that this step exports as another user than the builder's could have another digest: " +
		"let it run as the builder's user (on OpenShift with the SCC nonroot-v2), or take a builder with lifecycle %s made by %s"
	if version != Version || minor(theirGo) != minor(ourGo) {
		return exitcode.Errorf(exitcode.BadInput, "the builder has lifecycle %s made by %s, yard has %s made by %s: "+remedy,
			version, theirGo, Version, ourGo, Version, minor(ourGo))
	}
	return nil
}

// minor cuts go1.26.8 down to go1.26.
func minor(version string) string {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	return fmt.Sprintf("%s.%s", first, second)
}
