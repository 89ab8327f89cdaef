// Package rootfs makes small Debian file systems with mmdebstrap, as tar files
// in a cache. It makes no images of them.
package rootfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/child"
)

// Rootfs describes a file system by the packages on top of Debian's minimum.
type Rootfs struct {
	// Name of the file system, for file names and messages.
	Name string
	// Suite of Debian, for example "trixie".
	Suite string
	// Packages to install beside apt and the essential ones.
	Packages []string
}

// Maker makes file systems.
type Maker struct {
	// Cache is the folder for the tar files.
	Cache string
	// Mirror of Debian, "http://deb.debian.org/debian" when empty.
	Mirror string
	// Command is mmdebstrap's path, "mmdebstrap" when empty.
	Command string
}

// Make returns the path of the file system's tar file and whether it was there.
func (m Maker) Make(ctx context.Context, fs Rootfs) (path string, cached bool, err error) {
	mirror := m.Mirror
	if mirror == "" {
		mirror = "http://deb.debian.org/debian"
	}
	command := m.Command
	if command == "" {
		command = "mmdebstrap"
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{fs.Suite, mirror}, fs.Packages...), "\n")))
	path = filepath.Join(m.Cache, fmt.Sprintf("rootfs-%s-%s.tar", fs.Name, hex.EncodeToString(sum[:])[:12]))
	if _, err := os.Stat(path); err == nil {
		return path, true, nil
	}
	if err := os.MkdirAll(m.Cache, 0o755); err != nil {
		return "", false, err
	}
	unfinished, err := os.MkdirTemp(m.Cache, ".rootfs-")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(unfinished)
	part := filepath.Join(unfinished, "rootfs.tar")
	cmd := exec.CommandContext(ctx, command, "--quiet", "--variant=minbase", "--format=tar",
		"--include="+strings.Join(fs.Packages, ","), fs.Suite, part, mirror)
	// Fixed times, so that the same packages give the same layers.
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=0", "TMPDIR="+unfinished)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// It unmounts and removes its work on SIGTERM; a kill would leave mounts.
	child.Stop(cmd, syscall.SIGTERM, time.Minute)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", false, context.Cause(ctx)
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", false, fmt.Errorf("make a Debian file system: %w: install Debian's package mmdebstrap", err)
		}
		return "", false, fmt.Errorf("make a Debian file system with %s from %s (DEBIAN_MIRROR names another): %w: %s",
			command, mirror, err, child.LastLines(stderr.String(), 5))
	}
	return path, false, os.Rename(part, path)
}
