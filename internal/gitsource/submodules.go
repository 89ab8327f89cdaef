package gitsource

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// maxSubmoduleDepth is how deep submodules may have submodules.
const maxSubmoduleDepth = 5

// submodules checks out the submodules of a checkout, each at exactly the commit
// that the checkout names. Their addresses come from the repository and are checked
// like any other; file:// never is allowed, and credentials go to the host of the
// repository alone.
func (c *clone) submodules(ctx context.Context, levels int) error {
	w, err := c.repo.Worktree()
	if err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	modules, err := w.Submodules()
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, ".gitmodules: %w", err)
	}
	if len(modules) == 0 {
		return nil
	}
	if levels == 0 {
		return exitcode.Errorf(exitcode.BadInput, "submodules have submodules, more than %d deep", maxSubmoduleDepth)
	}
	idx, err := c.repo.Storer.Index()
	if err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	for _, m := range modules {
		if err := c.submodule(ctx, m.Config(), idx, levels); err != nil {
			return fmt.Errorf("submodule %q: %w", m.Config().Name, err)
		}
	}
	return nil
}

func (c *clone) submodule(ctx context.Context, m *config.Submodule, idx *index.Index, levels int) error {
	at, err := newPlace(c.dir, filepath.FromSlash(m.Path))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(idx.Entries, func(e *index.Entry) bool { return e.Name == m.Path && e.Mode == filemode.Submodule })
	if i < 0 {
		c.logf("submodule %q: .gitmodules names %s, the commit has none there", m.Name, m.Path)
		return nil
	}
	from, err := c.resolve(m.URL)
	if err != nil {
		return err
	}
	if err := makeDirs(c.dir, at.rel); err != nil {
		return err
	}
	sub := clone{from: from, caBundle: c.caBundle, depth: c.depth, dir: at.dir(), logf: c.logf}
	if from.host == c.from.host && from.scheme == c.from.scheme {
		sub.credentials = c.credentials
	}
	want := idx.Entries[i].Hash.String()
	c.logf("submodule %s at %s of %s", m.Path, want, from)
	if _, err := sub.checkout(ctx, Revision{commit: want}); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return sub.submodules(ctx, levels-1)
}

// resolve reads the address of a submodule, which may be relative to that of the
// repository.
func (c *clone) resolve(address string) (Address, error) {
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") {
		return ParseAddress(address, false)
	}
	u, err := url.Parse(c.from.String())
	if err != nil {
		return Address{}, exitcode.Errorf(exitcode.BadInput, "address: %w", err)
	}
	u.Path = path.Join(u.Path, address)
	return ParseAddress(u.String(), c.from.scheme == schemeFile)
}
