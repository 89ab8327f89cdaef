package imagelock

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Entry is what the lock file says of an image.
type Entry struct {
	// Digest is sha256:HEX, of the manifest or the index.
	Digest string `json:"digest"`
	// Source says in a line where the digest is from.
	Source string `json:"source"`
}

// File is a lock file: images by their names, HOST/REPOSITORY:TAG, without the
// tag for an image that is published by digest alone.
type File map[string]Entry

// header starts every lock file.
const header = `# The published images that the demo runs, by digest. A name that is not here, and
# whose digest no pinned source tells (kind's module does for the node image), is
# resolved by its registry once and added. Commit the file to give everybody the
# same images; remove an entry to resolve its name again. An entry wins over a
# pinned source.
`

// Read reads a lock file; one that is not there is empty.
func Read(path string) (File, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock of images: %w", err)
	}
	file, err := Parse(data)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", path, err)
	}
	return file, nil
}

// Parse reads a lock file's contents strictly: what it does not know, or finds
// twice, is an error.
func Parse(data []byte) (File, error) {
	if marker.Match(data) { // what follows one would be ignored
		return nil, errors.New("a line begins with --- or ..., but want one document")
	}
	// Not decoded into File: Go would take keys in any case, "Digest" for digest.
	var decoded map[string]map[string]map[string]string
	if err := yaml.UnmarshalStrict(data, &decoded); err != nil {
		return nil, fmt.Errorf("want images, each with digest and source: %s", strings.Join(strings.Fields(err.Error()), " ")) // on one line
	}
	for key := range decoded {
		if key != "images" {
			return nil, fmt.Errorf("unknown key %q: want images", key)
		}
	}
	file := File{}
	for _, image := range slices.Sorted(maps.Keys(decoded["images"])) {
		fields := decoded["images"][image]
		for key := range fields {
			if key != "digest" && key != "source" {
				return nil, fmt.Errorf("%q: unknown key %q: want digest and source", image, key)
			}
		}
		file[image] = Entry{Digest: fields["digest"], Source: fields["source"]}
		if err := checkEntry(image, file[image]); err != nil {
			return nil, fmt.Errorf("%q: %w", image, err)
		}
	}
	return file, nil
}

var marker = regexp.MustCompile(`(?m)^(---|\.\.\.)`)

func checkEntry(image string, entry Entry) error {
	canonical, err := Canonical(image)
	if err != nil {
		return err
	}
	if canonical != image {
		return fmt.Errorf("write it as %s", canonical)
	}
	if err := checkDigest(entry.Digest); err != nil {
		return err
	}
	if entry.Source == "" || strings.ContainsFunc(entry.Source, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("source: say in one line where the digest is from")
	}
	return nil
}

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func checkDigest(digest string) error {
	if !sha256Digest.MatchString(digest) {
		return fmt.Errorf("digest %q: want sha256: and 64 hexadecimal digits", digest)
	}
	return nil
}

// Canonical returns the name of an image as lock files have it: with its host, and
// Docker Hub's as docker.io. A name without a host or with a digest is an error.
func Canonical(image string) (string, error) {
	if tag, err := name.NewTag(image, name.StrictValidation); err == nil {
		return public(tag.Name()), nil
	}
	repository, err := name.NewRepository(image, name.StrictValidation)
	if err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "image %q: want HOST/REPOSITORY:TAG: %w", image, err)
	}
	return public(repository.Name()), nil
}

// public undoes what the library does to the name of Docker Hub.
func public(image string) string {
	if rest, hub := strings.CutPrefix(image, name.DefaultRegistry+"/"); hub {
		return "docker.io/" + rest
	}
	return image
}

// Encode returns the file's contents, the same bytes for the same entries.
func (f File) Encode() ([]byte, error) {
	for image, entry := range f {
		if err := checkEntry(image, entry); err != nil {
			return nil, fmt.Errorf("%q: %w", image, err)
		}
	}
	data, err := yaml.Marshal(map[string]File{"images": f})
	if err != nil {
		return nil, err
	}
	return append([]byte(header), data...), nil
}

// Write replaces a lock file in one step: whoever reads it finds the old or the
// new one, whole.
func (f File) Write(path string) (err error) {
	data, err := f.Encode()
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write the lock of images: %w", err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
			err = fmt.Errorf("write the lock of images %s: %w", path, err)
		}
	}()
	if _, err := temporary.Write(data); err != nil {
		return err
	}
	if err := temporary.Chmod(0o644); err != nil { // to be committed, so no secret
		return err
	}
	if err := temporary.Sync(); err != nil {
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
