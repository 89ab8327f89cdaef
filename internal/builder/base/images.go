package base

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trainyard/trainyard/internal/builder/fileset"
)

// Users and the group of buildpacks' images. All files that a build makes for the
// run image can be read by the group.
const (
	BuildUID = 1001
	RunUID   = 1002
	GID      = 1000
)

const bundlePath = "etc/ssl/certs/ca-certificates.crt"

// applets are the commands that the build image has a link to.
func applets() []string {
	return []string{"sh", "cat", "cp", "cut", "date", "env", "find", "grep", "head", "id", "ls", "mkdir", "mv", "ps", "rm", "sed", "sleep", "sort", "tail", "tar", "wc", "xargs"}
}

// common returns what both images have, for a user of this number.
func common(debian fileset.Set, uid int) (fileset.Set, error) {
	bundle, err := certificateBundle(debian)
	if err != nil {
		return nil, err
	}
	set := fileset.Set{}
	for name, e := range debian {
		if !strings.Contains(name, "busybox") && filepath.ToSlash(filepath.Dir(name))+"/" != certificates && !e.Mode.IsDir() {
			set[name] = e.Owned(0, 0)
		}
	}
	set.Merge(fileset.Set{
		bundlePath: fileset.File(bundle),
		"etc/passwd": fileset.File(fmt.Appendf(nil,
			"root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\ncnb:x:%d:%d::/home/cnb:/sbin/nologin\n", uid, GID)),
		"etc/group":         fileset.File(fmt.Appendf(nil, "root:x:0:\nnogroup:x:65534:\ncnb:x:%d:\n", GID)),
		"etc/nsswitch.conf": fileset.File([]byte("hosts: files dns\n")),
		"home/cnb":          fileset.Dir(0o755).Owned(uid, GID),
		"root":              fileset.Dir(0o700),
		"tmp":               {Mode: fileset.Dir(0o777).Mode | stickyBit},
	})
	return set, nil
}

// Build makes the build image of Debian's files and of a toolchain. The layers
// stay in files of the cache directory.
func Build(debian fileset.Set, g Go, arch, cache string) (v1.Image, error) {
	set, err := common(debian, BuildUID)
	if err != nil {
		return nil, err
	}
	set["bin"] = fileset.Link("usr/bin")
	for _, name := range []string{"usr/bin/busybox", "usr/share/doc/busybox-static/copyright"} {
		if e, ok := debian[name]; ok {
			set[name] = e.Owned(0, 0)
		}
	}
	for _, a := range applets() {
		set["usr/bin/"+a] = fileset.Link("busybox")
	}
	debianLayer, err := hashed(set, cache)
	if err != nil {
		return nil, err
	}
	goFiles, err := g.Files(arch)
	if err != nil {
		return nil, err
	}
	goLayer, err := goFiles.Layer(filepath.Join(cache, "go-"+g.Version+"-"+arch+"-"+g.Key+".tar.gz"))
	if err != nil {
		return nil, err
	}
	config := config(BuildUID, "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	config.Env = append(config.Env, "CNB_USER_ID="+strconv.Itoa(BuildUID), "CNB_GROUP_ID="+strconv.Itoa(GID))
	return image(debian, arch, config, debianLayer, goLayer)
}

// Run makes the run image of Debian's files.
func Run(debian fileset.Set, arch, cache string) (v1.Image, error) {
	set, err := common(debian, RunUID)
	if err != nil {
		return nil, err
	}
	l, err := hashed(set, cache)
	if err != nil {
		return nil, err
	}
	return image(debian, arch, config(RunUID, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), l)
}

func config(uid int, path string) v1.Config {
	return v1.Config{User: fmt.Sprintf("%d:%d", uid, GID), Env: []string{"PATH=" + path}, WorkingDir: "/"}
}

func image(debian fileset.Set, arch string, config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	release := osRelease(debian["usr/lib/os-release"].Data)
	config.Labels = map[string]string{
		"io.buildpacks.base.distro.name":    release["ID"],
		"io.buildpacks.base.distro.version": release["VERSION_ID"],
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(img, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Config: config, RootFS: v1.RootFS{Type: "layers"},
		Created: v1.Time{Time: time.Date(1980, time.January, 1, 0, 0, 1, 0, time.UTC)},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, layers...)
}
