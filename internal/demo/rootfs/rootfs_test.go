package rootfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/rootfs"
)

var node = rootfs.Rootfs{Name: "node", Suite: "trixie", Packages: []string{"systemd", "runc"}}

// maker has a mmdebstrap that keeps its calls in a folder and runs a script; $out
// is the file that it is to make.
func maker(t *testing.T, script string) (m rootfs.Maker, folder string) {
	t.Helper()
	folder = t.TempDir()
	m = rootfs.Maker{Cache: filepath.Join(folder, "cache"), Command: filepath.Join(folder, "mmdebstrap")}
	text := "#!/bin/sh\nfolder=" + folder + `
echo "$*" | sed "s|$folder/cache/.rootfs-[0-9]*/|PART/|" >>"$folder/calls"
echo "$SOURCE_DATE_EPOCH" >>"$folder/epoch"
for out; do case "$out" in *.tar) break;; esac; done
` + script
	if err := os.WriteFile(m.Command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return m, folder
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// cached lists what is in the cache.
func cached(t *testing.T, m rootfs.Maker) []string {
	t.Helper()
	entries, err := os.ReadDir(m.Cache)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestMakeRunsMmdebstrapOnce(t *testing.T) {
	m, folder := maker(t, `echo debian >"$out"`)
	path, there, err := m.Make(t.Context(), node)
	if err != nil || there || read(t, path) != "debian\n" {
		t.Fatalf("%s, there %v, %v", path, there, err)
	}
	again, there, err := m.Make(t.Context(), node)
	if err != nil || !there || again != path {
		t.Errorf("again: %s, there %v, %v", again, there, err)
	}
	want := "--quiet --variant=minbase --format=tar --include=systemd,runc trixie PART/rootfs.tar http://deb.debian.org/debian\n"
	if diff := cmp.Diff(want, read(t, filepath.Join(folder, "calls"))); diff != "" {
		t.Error(diff)
	}
	if got := read(t, filepath.Join(folder, "epoch")); got != "0\n" {
		t.Errorf("SOURCE_DATE_EPOCH is %q", got)
	}
	if diff := cmp.Diff([]string{filepath.Base(path)}, cached(t, m)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatGoesInNamesTheFile(t *testing.T) {
	m, _ := maker(t, `echo debian >"$out"`)
	paths := map[string]string{}
	for name, change := range map[string]func(*rootfs.Rootfs, *rootfs.Maker){
		"as it is":        func(*rootfs.Rootfs, *rootfs.Maker) {},
		"another name":    func(fs *rootfs.Rootfs, _ *rootfs.Maker) { fs.Name = "tools" },
		"another suite":   func(fs *rootfs.Rootfs, _ *rootfs.Maker) { fs.Suite = "forky" },
		"another package": func(fs *rootfs.Rootfs, _ *rootfs.Maker) { fs.Packages = []string{"systemd", "crun"} },
		"one more":        func(fs *rootfs.Rootfs, _ *rootfs.Maker) { fs.Packages = append(fs.Packages, "git") },
		"another mirror":  func(_ *rootfs.Rootfs, m *rootfs.Maker) { m.Mirror = "http://debian.test/debian" },
	} {
		fs, m := node, m
		change(&fs, &m)
		path, there, err := m.Make(t.Context(), fs)
		if err != nil || there {
			t.Errorf("%s: there %v, %v", name, there, err)
		}
		if other, same := paths[path]; same {
			t.Errorf("%s and %s are both %s", name, other, path)
		}
		paths[path] = name
	}
}

func TestAFileSystemThatFailsLeavesNothing(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"no network": {
			`echo half >"$out"; i=0; while [ $i -lt 9 ]; do i=$((i+1)); echo "E: line $i" >&2; done; exit 25`,
			"from http://deb.debian.org/debian (DEBIAN_MIRROR names another): exit status 25: E: line 5\nE: line 6\nE: line 7\nE: line 8\nE: line 9",
		},
		"it says that it is done, and is not": {`exit 0`, "rootfs.tar"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, _ := maker(t, test.script)
			path, _, err := m.Make(t.Context(), node)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, error %v, want one with %q", path, err, test.want)
			}
			if left := cached(t, m); left != nil {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	m := rootfs.Maker{Cache: t.TempDir()}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := m.Make(t.Context(), node); err == nil || !strings.Contains(err.Error(), "install Debian's package mmdebstrap") {
		t.Errorf("without mmdebstrap: %v", err)
	}
}

func TestAnInterruptedFileSystemLeavesNothing(t *testing.T) {
	m, folder := maker(t, `echo half >"$out"
trap 'echo >"$folder/cleaned"; exit 1' TERM
echo >"$folder/started"
while :; do sleep 0.02; done`)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(folder, "started")); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		cancel(interrupt)
	}()
	path, _, err := m.Make(ctx, node)
	if !errors.Is(err, interrupt) || path != "" {
		t.Errorf("%q, error %v", path, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "cleaned")); err != nil {
		t.Error("mmdebstrap had no time to unmount and remove its work")
	}
	if left := cached(t, m); left != nil {
		t.Errorf("left behind: %q", left)
	}
}
