package builder

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	gooffline "github.com/trainyard/trainyard/buildpacks/go-offline"
)

// buildpackDir lays out our buildpack as a directory: its descriptor and the two
// executables, which are one program.
func buildpackDir(dir, program, goVersion string) error {
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "buildpack.toml"), []byte(descriptor(goVersion)), 0o644); err != nil {
		return err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "build"), data, 0o755); err != nil {
		return err
	}
	return os.Symlink("build", filepath.Join(dir, "bin", "detect"))
}

// descriptor is the buildpack's, with the toolchain that this builder has in the
// place where Paketo's go-dist lists those that it can install: who looks there
// learns whether a project's go line can be met, before anything is built.
func descriptor(goVersion string) string {
	version := strings.TrimPrefix(goVersion, "go")
	if !regexp.MustCompile(`^\d+(\.\d+)+$`).MatchString(version) {
		return gooffline.Descriptor()
	}
	return gooffline.Descriptor() + fmt.Sprintf("\n[[metadata.dependencies]]\n  id = \"go\"\n  version = %q\n", version)
}
