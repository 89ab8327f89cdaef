package tekton

import (
	"crypto/md5" //nolint:gosec // a part of ko's image names, not a safeguard
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The modules that this package knows how to render.
const (
	PipelinesModule = "github.com/tektoncd/pipeline"
	TriggersModule  = "github.com/tektoncd/triggers"
)

// Release is one version of a Tekton project.
type Release struct {
	// Module is its Go module: PipelinesModule or TriggersModule.
	Module string
	// Version is the module's version, v1.2.3, which is also the release's.
	Version string
	// FS is the module's root folder.
	FS fs.FS
}

// ImageName returns the name and tag under which the project publishes the
// image of a main package. Its releases are made by ko, whose default name ends
// in the MD5 of the import path: two packages of one base name stay apart.
func (r Release) ImageName(importPath string) (string, error) {
	if !strings.HasPrefix(importPath, r.Module+"/") {
		return "", fmt.Errorf("%s is no package of %s", importPath, r.Module)
	}
	repository, found := strings.CutPrefix(r.Module, "github.com/")
	if !found {
		return "", fmt.Errorf("%s is not on github.com: where its images are is not known", r.Module)
	}
	sum := md5.Sum([]byte(importPath)) //nolint:gosec // as above
	return fmt.Sprintf("ghcr.io/%s/%s-%s:%s", repository, path.Base(importPath), hex.EncodeToString(sum[:]), r.Version), nil
}

func (r Release) String() string { return r.Module + "@" + r.Version }
