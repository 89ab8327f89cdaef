package base

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/builder/fileset"
	"github.com/trainyard/trainyard/internal/child"
	"github.com/trainyard/trainyard/internal/exitcode"
)

// Debian says where Debian's files come from.
type Debian struct {
	Suite   string // for example trixie
	Mirror  string // for example http://deb.debian.org/debian
	Command string // mmdebstrap, or its path
	Arch    string // for example amd64
}

// packages are those that something is taken of.
func packages() []string {
	return []string{"base-files", "busybox-static", "ca-certificates", "tzdata"}
}

// wanted says whether a file of the packages is taken.
func wanted(name string) bool {
	if strings.HasPrefix(name, "usr/share/doc/") {
		return path.Base(name) == "copyright" && slices.Contains(packages(), path.Base(path.Dir(name)))
	}
	switch name {
	case "usr/share/zoneinfo/localtime": // points out of the directory
		return false
	case "etc/os-release", "usr/lib/os-release", "etc/debian_version", "usr/bin/busybox":
		return true
	}
	return strings.HasPrefix(name, certificates) || strings.HasPrefix(name, "usr/share/zoneinfo/")
}

const certificates = "usr/share/ca-certificates/mozilla/"

// Files returns the files that are taken of the packages. What was unpacked once
// stays in the cache directory.
func (d Debian) Files(ctx context.Context, cache string) (fileset.Set, error) {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{d.Suite, d.Mirror, d.Arch}, packages()...), "\n")))
	file := filepath.Join(cache, "debian-"+d.Suite+"-"+hex.EncodeToString(sum[:6])+".tar")
	if _, err := os.Stat(file); err != nil {
		if err := d.unpack(ctx, file); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set, err := fileset.ReadTar(f, wanted)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to make it anew", file, err)
	}
	for _, must := range []string{"usr/lib/os-release", "usr/bin/busybox", "usr/share/zoneinfo/UTC"} {
		if _, ok := set[must]; !ok {
			return nil, fmt.Errorf("%s: no %s in it: remove it to make it anew", file, must)
		}
	}
	return set, nil
}

// unpack writes the packages' files to a tar file. No script of a package is run.
func (d Debian) unpack(ctx context.Context, file string) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".debian-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	part := filepath.Join(dir, "rootfs.tar")
	cmd := exec.CommandContext(ctx, d.Command, "--quiet", "--variant=extract", "--format=tar", "--architectures="+d.Arch,
		"--include="+strings.Join(packages(), ","), d.Suite, part, d.Mirror)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=0", "TMPDIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// It clears up after SIGTERM, its children too, and would leave mounts if it
	// were killed.
	child.Stop(cmd, syscall.SIGTERM, time.Minute)
	if err := cmd.Run(); err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, exec.ErrNotFound):
			return fmt.Errorf("unpack Debian's packages: %w: apt-get install mmdebstrap", err)
		}
		return exitcode.Errorf(exitcode.IO, "unpack Debian's packages of %s from %s: %w: %s", d.Suite, d.Mirror, err, child.LastLines(stderr.String(), 1))
	}
	return os.Rename(part, file)
}

// certificateBundle joins the certificates of the package, in the order of names,
// as update-ca-certificates does.
func certificateBundle(files fileset.Set) ([]byte, error) {
	var names []string
	for name := range files {
		if strings.HasPrefix(name, certificates) && strings.HasSuffix(name, ".crt") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range names {
		out.Write(bytes.TrimRight(files[name].Data, "\n"))
		out.WriteByte('\n')
	}
	if out.Len() == 0 {
		return nil, errors.New("no CA certificates in Debian's package ca-certificates")
	}
	return out.Bytes(), nil
}

// osRelease reads /etc/os-release: NAME=value or NAME="value".
func osRelease(data []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(k, "#") {
			out[k] = strings.Trim(v, `"'`)
		}
	}
	return out
}
