package gitsource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/trainyard/internal/exitcode"
)

const (
	// fetchedRef holds what was fetched.
	fetchedRef = "refs/remotes/" + git.DefaultRemoteName + "/fetched"
	// Objects from this size on are streamed. Without a limit a checkout holds the
	// largest file of a repository in memory several times.
	largeObject = 4 << 20
	objectCache = 16 << 20
)

// initRepository makes an empty repository whose files cannot be led out of it.
func initRepository(dir string) (*git.Repository, error) {
	dot := osfs.New(dir+"/"+git.GitDirName, osfs.WithBoundOS())
	s := filesystem.NewStorageWithOptions(dot, cache.NewObjectLRU(objectCache), filesystem.Options{LargeObjectThreshold: largeObject})
	return git.Init(s, osfs.New(dir, osfs.WithBoundOS()))
}

// fetch asks the server for a revision, with no more history than was asked for
// where the server can do that, and returns the object that it is.
func (c *clone) fetch(ctx context.Context, rev Revision) (plumbing.Hash, error) {
	refs, err := c.remote.ListContext(ctx, &git.ListOptions{Auth: c.auth, CABundle: c.caBundle})
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if rev.commit != "" {
		return c.fetchCommit(ctx, plumbing.NewHash(rev.commit), refs)
	}
	ref, err := choose(rev, refs)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if err := c.pull(ctx, ref.String(), c.depth); err != nil {
		return plumbing.ZeroHash, err
	}
	return c.fetched()
}

// fetchCommit asks for a commit itself. A server that gives only what a branch or
// tag points to is asked for one that does, and else for all of them with their
// history.
func (c *clone) fetchCommit(ctx context.Context, want plumbing.Hash, refs []*plumbing.Reference) (plumbing.Hash, error) {
	for _, ref := range refs {
		if ref.Type() == plumbing.HashReference && ref.Hash() == want && isNamed(ref.Name()) {
			if err := c.pull(ctx, ref.Name().String(), c.depth); err != nil {
				return want, err
			}
			if got, err := c.fetched(); err != nil || got == want {
				return got, err
			}
			break // it moved a moment ago
		}
	}
	err := c.pull(ctx, want.String(), c.depth)
	if err == nil {
		return want, nil
	}
	if ctx.Err() != nil {
		return want, err
	}
	c.logf("the server gives no commit by its id (%v): fetching all branches and tags with their history", err)
	for _, spec := range []string{"refs/heads/*:refs/remotes/" + git.DefaultRemoteName + "/*", "refs/tags/*:refs/tags/*"} {
		err := c.remote.FetchContext(ctx, c.options(0, config.RefSpec("+"+spec)))
		if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
			var none git.NoMatchingRefSpecError
			if errors.As(err, &none) {
				continue
			}
			return want, err
		}
	}
	if _, err := c.repo.CommitObject(want); err != nil {
		return want, exitcode.Errorf(exitcode.BadInput, "no branch or tag of it has the commit %s", want)
	}
	return want, nil
}

// isNamed reports whether a ref is a branch or a tag, not a pull request or HEAD.
func isNamed(n plumbing.ReferenceName) bool { return n.IsBranch() || n.IsTag() }

// choose finds the one ref that a name means.
func choose(rev Revision, refs []*plumbing.Reference) (plumbing.ReferenceName, error) {
	var match []plumbing.ReferenceName
	for _, name := range rev.candidates() {
		for _, ref := range refs {
			if ref.Name().String() == name {
				match = append(match, ref.Name())
			}
		}
	}
	switch len(match) {
	case 0:
		return "", exitcode.Errorf(exitcode.BadInput, "it has no %s%s", rev, rev.hint())
	case 1:
		return match[0], nil
	}
	return "", exitcode.Errorf(exitcode.BadInput, "%s is a branch and a tag: say %s or %s", rev, match[0], match[1])
}

// pull fetches one ref or commit into fetchedRef.
func (c *clone) pull(ctx context.Context, what string, depth int) error {
	return c.remote.FetchContext(ctx, c.options(depth, config.RefSpec("+"+what+":"+fetchedRef)))
}

func (c *clone) options(depth int, specs ...config.RefSpec) *git.FetchOptions {
	return &git.FetchOptions{RefSpecs: specs, Depth: depth, Auth: c.auth, CABundle: c.caBundle, Tags: git.NoTags, Force: true}
}

func (c *clone) fetched() (plumbing.Hash, error) {
	ref, err := c.repo.Reference(fetchedRef, true)
	if err != nil {
		return plumbing.ZeroHash, exitcode.New(exitcode.IO, err)
	}
	return ref.Hash(), nil
}

// explain says what a person can do about what a server or the way to it said.
func (c *clone) explain(err error) error {
	var key *knownhosts.KeyError
	var cert *tls.CertificateVerificationError
	if code := exitcode.Of(err); code != exitcode.Failed && code != exitcode.IO || errors.Is(err, context.Canceled) {
		return err
	}
	said := oneLine(err)
	switch {
	case errors.As(err, &key) && len(key.Want) == 0:
		return exitcode.Errorf(exitcode.BadInput, "known_hosts of the ssh-directory does not name %s: %s", c.from.host, said)
	case errors.As(err, &key):
		return exitcode.Errorf(exitcode.Integrity, "%s shows another key than known_hosts says: somebody may stand in between: %s", c.from.host, said)
	case errors.As(err, &cert):
		return exitcode.Errorf(exitcode.IO, "the certificate of %s is not trusted: give its authority with --ca-bundle: %s", c.from.host, said)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed), strings.Contains(said, "unable to authenticate"):
		secret := "basic-auth"
		if c.from.scheme == schemeSSH {
			secret = "ssh-directory"
		}
		with := "without credentials"
		switch {
		case c.auth != nil:
			with = "with the credentials of the workspace " + secret
		case c.from.scheme != schemeSSH && c.credentials.BasicAuth != "":
			with += fmt.Sprintf(", since .git-credentials has no line for %s://%s", c.from.scheme, c.from.host)
		}
		return exitcode.Errorf(exitcode.IO, "refused %s (a private repository, or one that is not there): put credentials that may read it into the workspace %s: %s", with, secret, said)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return exitcode.Errorf(exitcode.BadInput, "no such repository, or these credentials may not see it: %s", said)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return exitcode.Errorf(exitcode.BadInput, "it is empty: %s", said)
	}
	return exitcode.Errorf(exitcode.IO, "%s", said)
}

const maxSaid = 500

// oneLine is what a server said without its line breaks: some send whole pages.
func oneLine(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid], "") + "…"
	}
	return s
}
