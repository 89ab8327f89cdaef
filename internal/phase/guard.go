package phase

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
)

// another tells whether this step runs as another user than the one that the builder
// is made for, as clusters want it that give each namespace its users.
func another(f *plan.File, o Options) bool { return o.UID != f.UID || o.GID != f.GID }

// checkUser refuses users that a phase cannot run as.
func checkUser(name string, f *plan.File, uid, gid int) error {
	switch {
	case uid == f.UID && gid == f.GID:
		return nil
	case uid == 0:
		// Buildpacks refuse it themselves, and what they make would be root's.
		return exitcode.Errorf(exitcode.BadInput,
			"this step runs as root, %d:%d, the buildpacks of builder %s as %d:%d: take runAsUser and runAsGroup out of the pod template",
			uid, gid, f.Builder, f.UID, f.GID)
	case name == Create:
		// All phases are one program there, which would write its own user into the
		// image (I-03, I-04).
		return exitcode.Errorf(exitcode.BadInput,
			"this step runs as %d:%d, the buildpacks of builder %s as %d:%d: set trust-builder to false, for one step a phase, or let it run as that user",
			uid, gid, f.Builder, f.UID, f.GID)
	}
	return nil
}

// asAnother is what the environment of a phase has to say so that it does not try to
// become the builder's user, which fails with "operation not permitted" (I-03, I-04).
// Buildpacks get a home that they can write to: the builder's is its user's.
func asAnother(name string, o Options) (env []string, clean func(), err error) {
	switch name {
	case Analyze, Restore:
		return []string{fmt.Sprint("CNB_USER_ID=", o.UID), fmt.Sprint("CNB_GROUP_ID=", o.GID)}, func() {}, nil
	}
	home, err := os.MkdirTemp("", "home-")
	if err != nil {
		return nil, nil, exitcode.Errorf(exitcode.IO, "a home for user %d: %w", o.UID, err)
	}
	return []string{"HOME=" + home}, func() { _ = os.RemoveAll(home) }, nil
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
func appNote(app string, another bool) string {
	info, err := os.Stat(app)
	if err != nil {
		return ""
	}
	extra := fs.ModeSetgid | fs.ModeSetuid | fs.ModeSticky
	if another {
		extra &^= fs.ModeSetgid // package export leaves it out
	}
	if info.Mode().Perm() == 0o777 && info.Mode()&extra == 0 {
		return ""
	}
	return fmt.Sprintf("note: %s has mode %v and not 0777, and the mode is part of the image: its digest differs from that of pack build. "+
		"An fsGroup sets the group bit: leave it out of the pod template of this task", app, info.Mode())
}
