package prune

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Clear removes everything in the directory that no pattern keeps and returns how
// many files and directories it removed, those within a removed one not counted.
//
// A pattern is one of path.Match, relative to the directory. The directories on
// the way to what it names stay too. Where it has a component "*", everything
// below what matches up to there stays.
func Clear(dir string, keep []string) (removed int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, fmt.Errorf("remove the source: %w", err)
	}
	defer root.Close()
	c := clearer{root: root, patterns: withParents(keep)}
	if err := c.clear("."); err != nil {
		return c.removed, fmt.Errorf("remove the source: %w", err)
	}
	return c.removed, nil
}

// withParents adds what leads to each pattern: a/b/*.txt needs a and a/b.
func withParents(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		parts := strings.Split(p, "/")
		for i := range parts {
			if part := path.Join(parts[:i+1]...); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

type clearer struct {
	root     *os.Root
	patterns []string
	removed  int
}

func (c *clearer) clear(dir string) error {
	entries, err := fs.ReadDir(c.root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		kept, whole, err := c.kept(p)
		switch {
		case err != nil:
			return err
		case !kept:
			if err := c.root.RemoveAll(p); err != nil {
				return err
			}
			c.removed++
		case e.IsDir() && !whole:
			if err := c.clear(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// kept says whether a pattern keeps the path, and whether the first that does
// keeps all that is below it.
func (c *clearer) kept(p string) (kept, whole bool, err error) {
	for _, pattern := range c.patterns {
		ok, err := path.Match(pattern, p)
		if err != nil {
			return false, false, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if ok {
			return true, pattern == "*" || strings.HasSuffix(pattern, "/*"), nil
		}
	}
	return false, false, nil
}
