package imagelock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Image is a published image to be had by digest.
type Image struct {
	// Name is HOST/REPOSITORY:TAG, or HOST/REPOSITORY with a Digest.
	Name string
	// Digest and Source are what a pinned source says, if one does.
	Digest, Source string
}

// Pinned is an image with its digest.
type Pinned struct {
	// Name is the image's canonical name.
	Name string
	// Digest is sha256:HEX.
	Digest string
	// Source says where the digest is from.
	Source string
	// Locked says that it is the lock file's.
	Locked bool
}

// Reference returns HOST/REPOSITORY@DIGEST.
func (p Pinned) Reference() string {
	repository, _ := cutTag(p.Name)
	return repository + "@" + p.Digest
}

// cutTag cuts a canonical name before its tag, if it has one.
func cutTag(image string) (repository, tag string) {
	if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
		return image[:at], image[at+1:]
	}
	return image, ""
}

// Registry reads registries. A *registryclient.Client does.
type Registry interface {
	// Reference parses an image's name.
	Reference(image string) (name.Reference, error)
	// Digest returns that of what the reference names; when there is nothing, the
	// error is registryclient.ErrNotFound.
	Digest(ctx context.Context, reference name.Reference) (v1.Hash, error)
}

// Locker finds the digests of images. It is safe for use by several goroutines of
// one process.
type Locker struct {
	// Path of the lock file. Its folder must be there, the file need not.
	Path string
	// Registry is asked for digests that nothing else tells.
	Registry Registry
	// Mirror, if any, is asked instead of the public registries.
	Mirror Mirror
	// Now tells the time, for the note on when a digest was resolved.
	Now func() time.Time
	// Say, if set, gets a line for each digest that was resolved.
	Say func(line string)

	writing sync.Mutex
}

// Resolve returns the image's digest. It asks a registry only for an image that
// is neither locked nor pinned, and then adds it to the lock file.
func (l *Locker) Resolve(ctx context.Context, image Image) (Pinned, error) {
	canonical, err := Canonical(image.Name)
	if err != nil {
		return Pinned{}, err
	}
	locked, err := Read(l.Path)
	if err != nil {
		return Pinned{}, err
	}
	if entry, found := locked[canonical]; found {
		return Pinned{Name: canonical, Digest: entry.Digest, Source: entry.Source, Locked: true}, nil
	}
	if image.Digest != "" {
		if err := checkDigest(image.Digest); err != nil {
			return Pinned{}, fmt.Errorf("%s, by %s: %w", canonical, image.Source, err)
		}
		return Pinned{Name: canonical, Digest: image.Digest, Source: image.Source}, nil
	}
	if _, tag := cutTag(canonical); tag == "" {
		return Pinned{}, exitcode.Errorf(exitcode.BadInput, "%s has no tag, and no source tells its digest", canonical)
	}
	digest, err := l.digest(ctx, canonical)
	if err != nil {
		return Pinned{}, fmt.Errorf("find the digest of %s: %w", canonical, err)
	}
	entry := Entry{Digest: digest, Source: "resolved on " + l.Now().UTC().Format(time.DateOnly)}
	if l.Mirror.Host != "" {
		entry.Source += " by mirror " + l.Mirror.Host
	}
	if err := l.add(canonical, &entry); err != nil {
		return Pinned{}, err
	}
	if l.Say != nil {
		l.Say(fmt.Sprintf("%s is %s, %s, recorded in %s", canonical, entry.Digest, entry.Source, l.Path))
	}
	return Pinned{Name: canonical, Digest: entry.Digest, Source: entry.Source, Locked: true}, nil
}

// add records an entry. One that is there by now stays, and comes back.
func (l *Locker) add(image string, entry *Entry) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	locked, err := Read(l.Path)
	if err != nil {
		return err
	}
	if first, found := locked[image]; found {
		*entry = first
		return nil
	}
	locked[image] = *entry
	return locked.Write(l.Path)
}

// digest asks the registry, or its mirror.
func (l *Locker) digest(ctx context.Context, image string) (string, error) {
	reference, err := l.Registry.Reference(l.Mirror.Name(image))
	if err != nil {
		return "", err
	}
	digest, err := l.Registry.Digest(ctx, reference)
	if err != nil {
		return "", err
	}
	return digest.String(), nil
}

// atOnce bounds the requests that Check has on the way.
const atOnce = 4

// Check makes sure that the images are there to be pulled by their digests, before
// something waits for them in vain. It returns what is wrong with all of them.
func (l *Locker) Check(ctx context.Context, images ...Pinned) error {
	wrong := make([]error, len(images))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, image := range images {
		group.Go(func() error {
			_, err := l.digest(ctx, image.Reference())
			if errors.Is(err, registryclient.ErrNotFound) {
				err = exitcode.Errorf(exitcode.Integrity, "%w: its digest is %s, %s", err, image.Source, l.remedy(image))
			}
			wrong[i] = err
			return nil
		})
	}
	_ = group.Wait() // the errors are in wrong
	return errors.Join(wrong...)
}

func (l *Locker) remedy(image Pinned) string {
	if image.Locked {
		return fmt.Sprintf("by %s: if the name %s may mean another image now, remove its entry there", l.Path, image.Name)
	}
	return fmt.Sprintf("which is not locked: if another image may be used, say which in %s, for %s", l.Path, image.Name)
}
