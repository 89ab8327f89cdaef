package phase

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
)

// checkUser refuses to run as another user than the buildpacks': the lifecycle would
// try to become that user and fail with "operation not permitted" (I-03, I-04).
func checkUser(f *plan.File, uid, gid int) error {
	if uid == f.UID && gid == f.GID {
		return nil
	}
	return exitcode.Errorf(exitcode.BadInput,
		"this step runs as %d:%d, the buildpacks of builder %s as %d:%d: take runAsUser and runAsGroup out of the pod template, or set them to the builder's",
		uid, gid, f.Builder, f.UID, f.GID)
}

// checkNoCredentials refuses to run foreign code where it could read credentials.
// Tekton hands secrets that a ServiceAccount lists and annotates to every step, and
// no step can be exempt from that.
func checkNoCredentials(name string, secretDirs []string, getenv func(string) string) error {
	for _, variable := range []string{"DOCKER_CONFIG", "CNB_REGISTRY_AUTH"} {
		if getenv(variable) != "" {
			return exitcode.Errorf(exitcode.BadInput, "%s runs buildpacks and must not have %s: unset it in this step", name, variable)
		}
	}
	for _, dir := range secretDirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return exitcode.Errorf(exitcode.IO, "%s: %w", name, err)
		}
		for _, e := range entries {
			if e.Name() == "" || strings.HasPrefix(e.Name(), "..") {
				continue
			}
			return exitcode.Errorf(exitcode.BadInput,
				"%s runs buildpacks, which could read %s/%s: Tekton put it there for the ServiceAccount's secrets with a tekton.dev annotation: take the annotation off, and name the secret in the parameter registry-secret",
				name, dir, e.Name())
		}
	}
	return nil
}

// appNote tells when the mode of the application's folder, which becomes part of the
// image, is not the one that pack gives it.
func appNote(app string) string {
	info, err := os.Stat(app)
	if err != nil {
		return ""
	}
	if info.Mode().Perm() == 0o777 && info.Mode()&(fs.ModeSetgid|fs.ModeSetuid|fs.ModeSticky) == 0 {
		return ""
	}
	return fmt.Sprintf("note: %s has mode %v and not 0777, and the mode is part of the image: its digest differs from that of pack build. "+
		"An fsGroup sets the group bit: leave it out of the pod template of this task", app, info.Mode())
}
