package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Tree is what a build sees of a source.
type Tree struct {
	Digest string `json:"digest"` // sha256:…, see the package comment
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Open opens a folder of a workspace. A folder that is not there, or that lies
// outside of the workspace, through a link too, is bad input.
func Open(workspace, folder string) (*os.Root, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "source %s: %w", workspace, reason(err))
	}
	defer func() { _ = root.Close() }()
	return Sub(root, folder)
}

// Sub opens a folder within a root, with the rules of Open.
func Sub(root *os.Root, folder string) (*os.Root, error) {
	if folder == "" {
		folder = "."
	}
	sub, err := root.OpenRoot(folder)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "source folder %s in %s: %w", folder, root.Name(), reason(err))
	}
	return sub, nil
}

// Scan computes the digest of what the filter takes.
func Scan(ctx context.Context, root *os.Root, f Filter) (*Tree, error) {
	return take(ctx, root, f, nil)
}

// entry is a file or a link.
type entry struct {
	path   string
	info   fs.FileInfo
	target string // of a link
}

func (e entry) kind() string {
	switch {
	case e.info.Mode()&fs.ModeSymlink != 0:
		return "link"
	case e.info.Mode()&0o100 != 0:
		return "exec"
	}
	return "file"
}

// take walks, hashes, and hands what it reads to a copy, if there is one.
func take(ctx context.Context, root *os.Root, f Filter, to *writer) (*Tree, error) {
	entries, err := list(ctx, root, f)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, exitcode.Errorf(exitcode.BadInput, "source %s: no file is selected: check include and exclude in the project descriptor", root.Name())
	}
	t := &Tree{}
	all := sha256.New()
	fmt.Fprint(all, "trainyard source v1\x00")
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		content := sha256.New()
		n, err := read(root, e, content, to)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(all, "%s %x %s\x00", e.kind(), content.Sum(nil), e.path)
		t.Files++
		t.Bytes += n
	}
	t.Digest = "sha256:" + hex.EncodeToString(all.Sum(nil))
	return t, nil
}

// list returns what the filter takes, by path.
func list(ctx context.Context, root *os.Root, f Filter) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return exitcode.Errorf(exitcode.IO, "source %s: %w", root.Name(), err)
		case ctx.Err() != nil:
			return ctx.Err()
		case path.Base(p) == ".git":
			// The index, packs and hooks differ between checkouts of one commit; a
			// submodule and a worktree have a file of this name.
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !f.Takes(p):
			return nil
		}
		e := entry{path: p}
		if e.info, err = root.Lstat(p); err != nil {
			return exitcode.Errorf(exitcode.IO, "source %s: %w", root.Name(), err)
		}
		switch mode := e.info.Mode(); {
		case mode.IsRegular():
		case mode&fs.ModeSymlink != 0:
			if e.target, err = target(root, p); err != nil {
				return err
			}
		default:
			return exitcode.Errorf(exitcode.BadInput, "source file %s is a %s: only files, folders and links can be built: exclude it", p, kindName(mode))
		}
		entries = append(entries, e)
		return nil
	})
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries, err
}

// target reads a link and refuses one that leaves the source: in the build it would
// name a file of the builder, and here one of the host.
func target(root *os.Root, p string) (string, error) {
	to, err := root.Readlink(p)
	if err != nil {
		return "", exitcode.Errorf(exitcode.IO, "source link %s: %w", p, err)
	}
	escapes := exitcode.Errorf(exitcode.BadInput, "source link %s leads to %s, outside of the source: make it relative and within, or exclude it", p, to)
	if path.IsAbs(to) || !fs.ValidPath(path.Join(path.Dir(p), to)) {
		return "", escapes
	}
	// By its words it stays inside; links on the way may still lead out.
	if _, err := root.Stat(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", escapes
	}
	return to, nil
}

// read hashes one entry and copies it.
func read(root *os.Root, e entry, hash io.Writer, to *writer) (int64, error) {
	if e.target != "" {
		_, err := io.WriteString(hash, e.target)
		if err == nil && to != nil {
			err = to.link(e)
		}
		return 0, err
	}
	in, err := root.Open(e.path)
	if err != nil {
		return 0, exitcode.Errorf(exitcode.IO, "source file %s (mode %v) as user %d:%d: %w", e.path, e.info.Mode(), os.Geteuid(), os.Getegid(), reason(err))
	}
	defer func() { _ = in.Close() }()
	var n int64
	if to == nil {
		n, err = io.Copy(hash, in)
	} else {
		n, err = to.file(e, io.TeeReader(in, hash))
	}
	if err != nil {
		return n, exitcode.Errorf(exitcode.IO, "source file %s: %w", e.path, err)
	}
	if now, err := in.Stat(); err != nil || n != e.info.Size() || !now.ModTime().Equal(e.info.ModTime()) || !os.SameFile(now, e.info) {
		return n, exitcode.Errorf(exitcode.Conflict, "source file %s changed while it was read: build when nothing writes to the source", e.path)
	}
	return n, nil
}

// reason takes the path off a system error, which the message names better.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func kindName(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
