package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

// Detect looks at the host whose root folder is given ("/").
func Detect(root string) (Host, error) {
	held, err := capability.Bounding(filepath.Join(root, "proc/1/status"))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) { // hidepid
		held, err = capability.Bounding(filepath.Join(root, "proc/self/status"))
	}
	if err != nil {
		return Host{}, err
	}
	// Version 2 has one hierarchy, with this file in its root.
	_, err = os.Stat(filepath.Join(root, "sys/fs/cgroup/cgroup.controllers"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Host{}, err
	}
	return Host{CgroupV1: err != nil, NoResourceCapability: !held.Has("CAP_SYS_RESOURCE")}, nil
}
