package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

// maxSmall is the size in bytes up to which files other than the weights are
// allowed: they are created by conditional writes from memory.
const maxSmall = 64 << 20

// File is a local file that becomes part of a version.
type File struct {
	Name string // in the version's folder, such as config.json
	Path string // on this machine
}

// Addition asks to add a version.
type Addition struct {
	Model string

	// Files make the model: Weights, and what one needs to run them. If the
	// version exists they must be the same (ErrConflict).
	Files []File

	// Extra files tell about the model, such as a card or reports. Where the
	// version has some already those stay: the same weights may come out of a
	// second run at another time.
	Extra []File

	Run string
}

// Add puts a version into the registry, or finds that it is there (false). An
// interrupted Add leaves no version; the next one continues it.
func (r *Registry) Add(ctx context.Context, a Addition) (Manifest, bool, error) {
	if err := checkName("model", a.Model); err != nil {
		return Manifest{}, false, err
	}
	m, paths, err := r.describe(ctx, a)
	if err != nil {
		return Manifest{}, false, fmt.Errorf("add to model %s: %w", a.Model, err)
	}
	old, err := r.Manifest(ctx, m.Model, m.Version)
	switch {
	case err == nil:
		m, err = old, sameFiles(old, m)
		if err == nil {
			err = r.repair(ctx, m, paths)
		}
		return m, false, err
	case !errors.Is(err, store.ErrNotFound):
		return Manifest{}, false, err
	}
	for i := range m.Files {
		if err := r.upload(ctx, m, &m.Files[i], paths[m.Files[i].Name]); err != nil {
			return Manifest{}, false, fmt.Errorf("add version %s to model %s: %w", m.Version, m.Model, err)
		}
	}
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Manifest{}, false, err
	}
	_, err = r.store.PutIf(ctx, path.Join(versionDir(m.Model, m.Version), manifestName), append(body, '\n'), "")
	if errors.Is(err, store.ErrLost) { // somebody added the same at the same time
		if old, err = r.Manifest(ctx, m.Model, m.Version); err != nil {
			return Manifest{}, false, err
		}
		return old, false, sameFiles(old, m)
	}
	return m, err == nil, err
}

// describe hashes the local files.
func (r *Registry) describe(ctx context.Context, a Addition) (Manifest, map[string]string, error) {
	m := Manifest{Model: a.Model, Run: a.Run, Created: r.now().UTC().Truncate(time.Millisecond)}
	paths := map[string]string{}
	for i, f := range append(append([]File{}, a.Files...), a.Extra...) {
		if err := checkFileName(f.Name); err != nil {
			return Manifest{}, nil, err
		}
		if _, ok := paths[f.Name]; ok {
			return Manifest{}, nil, fmt.Errorf("file %s is given twice", f.Name)
		}
		paths[f.Name] = f.Path
		sum, size, err := hashFile(ctx, f.Path)
		if err != nil {
			return Manifest{}, nil, err
		}
		if f.Name != Weights && size > maxSmall {
			return Manifest{}, nil, fmt.Errorf("file %s has %d bytes: only %s may be larger than %d", f.Path, size, Weights, maxSmall)
		}
		m.Files = append(m.Files, ManifestFile{Name: f.Name, Size: size, SHA256: sum, Extra: i >= len(a.Files)})
	}
	w, ok := m.file(Weights)
	if !ok || w.Extra {
		return Manifest{}, nil, fmt.Errorf("no %s among the files: its digest names the version", Weights)
	}
	m.Version = w.SHA256
	return m, paths, nil
}

func hashFile(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return f.Read(p)
	}))
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// sameFiles compares what makes the model.
func sameFiles(old, mine Manifest) error {
	for _, f := range mine.Files {
		if f.Extra {
			continue
		}
		was, ok := old.file(f.Name)
		if !ok || was.SHA256 != f.SHA256 {
			return fmt.Errorf("%w: version %s of model %s has %s with sha256 %q, yours has %s: use another model name", ErrConflict, old.Version, old.Model, f.Name, was.SHA256, f.SHA256)
		}
	}
	return nil
}

// repair uploads files of an existing version that the store has lost or spoilt,
// if they are at hand.
func (r *Registry) repair(ctx context.Context, m Manifest, paths map[string]string) error {
	for _, f := range m.Files {
		err := r.checkFile(ctx, m, f)
		local, ok := paths[f.Name]
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrIntegrity) || !ok {
			return err
		}
		if sum, _, hashErr := hashFile(ctx, local); hashErr != nil || sum != f.SHA256 {
			return errors.Join(err, hashErr)
		}
		if err := r.put(ctx, m, f, local); err != nil {
			return err
		}
	}
	return nil
}

// upload puts one file of a version that has no manifest yet. The weights may
// be put over: whatever is under their digest must be them. Other files are
// created once and never replaced, so that nothing changes under a manifest
// that another writer is about to publish.
func (r *Registry) upload(ctx context.Context, m Manifest, f *ManifestFile, local string) error {
	key := path.Join(versionDir(m.Model, m.Version), f.Name)
	if f.Name == Weights {
		if info, err := r.store.Stat(ctx, key); err == nil && info.SHA256 == f.SHA256 && info.Size == f.Size {
			return nil
		}
		return r.put(ctx, m, *f, local)
	}
	body, err := os.ReadFile(local)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != f.SHA256 {
		return fmt.Errorf("%w: file %s changed while it was added", store.ErrIntegrity, local)
	}
	_, err = r.store.PutIf(ctx, key, body, "")
	if !errors.Is(err, store.ErrLost) {
		return err
	}
	_, info, err := store.ReadAll(ctx, r.store, key, maxSmall) // read: a store need not know the digest
	switch {
	case err != nil:
		return err
	case info.SHA256 == f.SHA256:
		return nil
	case f.Extra: // the first one stays
		f.SHA256, f.Size = info.SHA256, info.Size
		return nil
	}
	return fmt.Errorf("%w: an unfinished upload left %s with sha256 %s, yours has %s: remove it from %s and try again", ErrConflict, key, info.SHA256, f.SHA256, r.store.URL())
}

func (r *Registry) put(ctx context.Context, m Manifest, f ManifestFile, local string) error {
	info, err := store.Upload(ctx, r.store, local, path.Join(versionDir(m.Model, m.Version), f.Name))
	if err != nil {
		return err
	}
	if info.SHA256 != f.SHA256 {
		return fmt.Errorf("%w: file %s changed while it was added", store.ErrIntegrity, local)
	}
	return nil
}
