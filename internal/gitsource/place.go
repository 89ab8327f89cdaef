package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/internal/exitcode"
)

const (
	dirMode  fs.FileMode = 0o775
	fileMode fs.FileMode = 0o664
	execMode fs.FileMode = 0o775
)

// place is a folder below a workspace that was checked to be there: reached over
// directories alone, so that no link in the workspace leads it elsewhere.
type place struct {
	root, rel string
}

// newPlace checks the path of a folder, which may not exist yet.
func newPlace(root, rel string) (place, error) {
	if root == "" {
		return place{}, exitcode.Errorf(exitcode.Usage, "no workspace: set --workspace")
	}
	clean := filepath.Clean(rel)
	if rel == "" || clean == "." || !filepath.IsLocal(rel) || strings.ContainsAny(rel, "\x00\n") {
		return place{}, exitcode.Errorf(exitcode.Usage, "path %.200q: want a folder below the workspace, such as source", rel)
	}
	if part, _, _ := strings.Cut(clean, string(filepath.Separator)); part == ".git" {
		return place{}, exitcode.Errorf(exitcode.Usage, "path %.200q is git's own", rel)
	}
	at := root
	for part := range strings.SplitSeq(clean, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return place{}, exitcode.New(exitcode.IO, fmt.Errorf("workspace: %w", err))
		}
		if !info.IsDir() {
			return place{}, exitcode.Errorf(exitcode.BadInput, "%s of the workspace is not a directory but %s: use another path", rel, kind(info.Mode()))
		}
	}
	return place{root: root, rel: clean}, nil
}

func kind(m fs.FileMode) string {
	if m&fs.ModeSymlink != 0 {
		return "a symbolic link"
	}
	return "a file"
}

func (p place) dir() string    { return filepath.Join(p.root, p.rel) }
func (p place) parent() string { return filepath.Dir(p.dir()) }

// beside makes a folder next to the place, where a rename is atomic.
func (p place) beside(mark string) (string, error) {
	if err := makeDirs(p.root, filepath.Dir(p.rel)); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(p.parent(), "."+filepath.Base(p.rel)+mark)
	if err != nil {
		return "", explain(p.parent(), err)
	}
	return tmp, openToGroup(tmp)
}

// makeDirs makes the folders of rel below root, open to the group.
func makeDirs(root, rel string) error {
	if rel == "." {
		return nil
	}
	at := root
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		parent := at
		at = filepath.Join(at, part)
		err := os.Mkdir(at, dirMode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return explain(parent, err)
		}
		if err := openToGroup(at); err != nil {
			return err
		}
	}
	return nil
}

// openToGroup undoes the umask and keeps the set-group-id bit that a volume hands
// down: the stages of a pipeline run under several users of one group.
func openToGroup(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	return exitcode.New(exitcode.IO, os.Chmod(dir, dirMode|info.Mode()&fs.ModeSetgid))
}

// explain says who was refused where.
func explain(dir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return exitcode.New(exitcode.IO, err)
	}
	mode := "cannot be examined"
	if info, statErr := os.Stat(dir); statErr == nil {
		mode = "has mode " + info.Mode().String()
	}
	return exitcode.Errorf(exitcode.IO, "uid %d gid %d may not write to %s, which %s: make the volume writable for a group of this user (fsGroup: 1000 in the run's podTemplate): %w", os.Geteuid(), os.Getegid(), dir, mode, err)
}

// settle opens a finished tree to the group and refuses symbolic links that lead
// out of it: whoever reads the source must not be sent elsewhere.
func settle(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case d.IsDir():
			return openToGroup(path)
		case d.Type()&fs.ModeSymlink != 0:
			return checkLink(root, name)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fileMode
		if info.Mode()&0o100 != 0 {
			mode = execMode
		}
		return os.Chmod(path, mode)
	})
	return exitcode.New(exitcode.Of(err), err)
}

// checkLink follows a link as far as it goes within root. A link to nothing, or in
// a circle, leads nowhere.
func checkLink(root *os.Root, name string) error {
	to, err := root.Readlink(name)
	if err != nil {
		return err
	}
	_, err = root.Stat(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return exitcode.Errorf(exitcode.BadInput, "%s is a symbolic link to %.200q, which leads out of the source: take it out of the repository", name, to)
}

// replace puts a finished folder in its place. What was there is moved aside first
// and removed last, so that a crash leaves one of both.
func (p place) replace(tmp string) error {
	dir := p.dir()
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return exitcode.New(exitcode.IO, os.Rename(tmp, dir))
	}
	old, err := p.beside(oldMark)
	if err != nil {
		return err
	}
	aside := filepath.Join(old, "replaced")
	if err := os.Rename(dir, aside); err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return exitcode.New(exitcode.IO, errors.Join(err, os.Rename(aside, dir)))
	}
	return exitcode.New(exitcode.IO, os.RemoveAll(old))
}

const (
	tempMark = ".fetch-"
	oldMark  = ".old-"
)

// sweep removes what a killed fetch into this place left, half clones above all.
func (p place) sweep() error {
	for _, mark := range []string{tempMark, oldMark} {
		left, err := filepath.Glob(filepath.Join(globQuote(p.parent()), "."+globQuote(filepath.Base(p.rel))+mark+"*"))
		if err != nil {
			return exitcode.New(exitcode.IO, err)
		}
		for _, dir := range left {
			if err := os.RemoveAll(dir); err != nil {
				return exitcode.New(exitcode.IO, err)
			}
		}
	}
	return nil
}

func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
