package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// Weights is the file whose SHA-256 names a version.
const Weights = "model.safetensors"

const manifestName = "manifest.json"

// Manifest lists the files of a version.
type Manifest struct {
	Model   string         `json:"model"`
	Version string         `json:"version"` // sha256 of Weights
	Files   []ManifestFile `json:"files"`
	Created time.Time      `json:"created"`
	Run     string         `json:"run,omitempty"`
}

// ManifestFile is one file of a version.
type ManifestFile struct {
	Name   string `json:"name"` // relative to the version's folder
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	// Extra files accompany a version (its card, its reports). They are those
	// of whoever added the version first.
	Extra bool `json:"extra,omitempty"`
}

func (m Manifest) file(name string) (ManifestFile, bool) {
	for _, f := range m.Files {
		if f.Name == name {
			return f, true
		}
	}
	return ManifestFile{}, false
}

// checkFileName guards names of files, which come from manifests of others and
// become paths on this machine.
func checkFileName(name string) error {
	if !fs.ValidPath(name) || name == "." || name == manifestName || store.ValidateKey(name) != nil {
		return fmt.Errorf("file name %.120q in a model: must be a clean relative path other than %s", name, manifestName)
	}
	return nil
}

// parseManifest reads and checks a manifest.
func parseManifest(raw []byte, model, version string) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return Manifest{}, fmt.Errorf("%w: not a manifest: %w", store.ErrIntegrity, err)
	}
	bad := func(format string, args ...any) (Manifest, error) {
		return Manifest{}, fmt.Errorf("%w: %s", store.ErrIntegrity, fmt.Sprintf(format, args...))
	}
	if m.Model != model || m.Version != version {
		return bad("it is the manifest of %q %q", m.Model, m.Version)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if err := checkFileName(f.Name); err != nil {
			return bad("%v", err)
		}
		if seen[f.Name] || !isDigest(f.SHA256) || f.Size < 0 {
			return bad("entry %q is double or has no size or sha256", f.Name)
		}
		seen[f.Name] = true
	}
	if w, ok := m.file(Weights); !ok || w.SHA256 != version {
		return bad("%s is missing or has another digest than the version", Weights)
	}
	return m, nil
}

// Manifest reads the list of files of a version. store.ErrNotFound means that
// there is no such version, or that its upload did not end.
func (r *Registry) Manifest(ctx context.Context, model, version string) (Manifest, error) {
	if err := errors.Join(checkName("model", model), checkVersion(version)); err != nil {
		return Manifest{}, err
	}
	key := path.Join(versionDir(model, version), manifestName)
	raw, _, err := store.ReadAll(ctx, r.store, key, 16<<20)
	if err != nil {
		return Manifest{}, fmt.Errorf("version %s of model %s: %w", version, model, err)
	}
	m, err := parseManifest(raw, model, version)
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest %s: %w", key, err)
	}
	return m, nil
}

// Verify checks that every file of a version is in the store with its size and
// recorded digest. It does not read the files; Check does.
func (r *Registry) Verify(ctx context.Context, model, version string) (Manifest, error) {
	return r.eachFile(ctx, model, version, r.verifyFile)
}

// Check reads every file of a version and compares its digest: a store may not
// notice that its disk changed a byte.
func (r *Registry) Check(ctx context.Context, model, version string) (Manifest, error) {
	return r.eachFile(ctx, model, version, r.checkFile)
}

func (r *Registry) eachFile(ctx context.Context, model, version string, look func(context.Context, Manifest, ManifestFile) error) (Manifest, error) {
	m, err := r.Manifest(ctx, model, version)
	if err != nil {
		return Manifest{}, err
	}
	for _, f := range m.Files {
		if err := look(ctx, m, f); err != nil {
			return Manifest{}, err
		}
	}
	return m, nil
}

func (r *Registry) verifyFile(ctx context.Context, m Manifest, f ManifestFile) error {
	info, err := r.store.Stat(ctx, path.Join(versionDir(m.Model, m.Version), f.Name))
	return compare(m, f, info, err)
}

func (r *Registry) checkFile(ctx context.Context, m Manifest, f ManifestFile) error {
	info, err := r.store.Get(ctx, path.Join(versionDir(m.Model, m.Version), f.Name), io.Discard)
	return compare(m, f, info, err)
}

// compare says whether what the store answered is the file of the manifest.
func compare(m Manifest, f ManifestFile, info store.Info, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s of version %s of model %s: %w: it is in the manifest, but not in the store: add the version again", f.Name, m.Version, m.Model, store.ErrIntegrity)
	}
	if err != nil {
		return err
	}
	if info.Size != f.Size || (info.SHA256 != "" && info.SHA256 != f.SHA256) {
		return fmt.Errorf("%s of version %s of model %s: %w: %d bytes with sha256 %s in the store, %d bytes with %s in the manifest",
			f.Name, m.Version, m.Model, store.ErrIntegrity, info.Size, info.SHA256, f.Size, f.SHA256)
	}
	return nil
}

// Fetch downloads the files of a version or an alias into dir and checks every
// digest against the manifest.
func (r *Registry) Fetch(ctx context.Context, model, ref, dir string) (Manifest, error) {
	version, err := r.Resolve(ctx, model, ref)
	if err != nil {
		return Manifest{}, err
	}
	m, err := r.Manifest(ctx, model, version)
	if errors.Is(err, store.ErrNotFound) && ref != version {
		// Not "not found", which would read as an alias that was never set.
		err = fmt.Errorf("%s of model %s is version %s: %w: it has no manifest: add it again", ref, model, version, store.ErrIntegrity)
	}
	if err != nil {
		return Manifest{}, err
	}
	for _, f := range m.Files {
		to := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := atomicfile.MkdirAll(filepath.Dir(to)); err != nil {
			return Manifest{}, err
		}
		key := path.Join(versionDir(model, version), f.Name)
		info, err := store.Download(ctx, r.store, key, to)
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("%w: it is in the manifest, but not in the store", store.ErrIntegrity)
		}
		if err == nil && (info.SHA256 != f.SHA256 || info.Size != f.Size) {
			err = fmt.Errorf("%w: sha256 %s, the manifest says %s", store.ErrIntegrity, info.SHA256, f.SHA256)
		}
		if err != nil {
			return Manifest{}, fmt.Errorf("fetch %s of version %s of model %s: %w", f.Name, version, model, err)
		}
	}
	return m, nil
}

// Version is one line of a list of versions.
type Version struct {
	Manifest
	Aliases []string // that point at it now, sorted
}

// Versions lists the complete versions of a model by time of creation.
func (r *Registry) Versions(ctx context.Context, model string) ([]Version, error) {
	aliases, err := r.Aliases(ctx, model) // checks the name
	if err != nil {
		return nil, err
	}
	infos, err := r.store.List(ctx, modelDir(model)+"/")
	if err != nil {
		return nil, fmt.Errorf("versions of model %s: %w", model, err)
	}
	var digests []string
	for _, info := range infos {
		rest := strings.TrimPrefix(info.Key, modelDir(model)+"/")
		if v, name, _ := strings.Cut(rest, "/"); name == manifestName && isDigest(v) {
			digests = append(digests, v)
		}
	}
	out := make([]Version, len(digests))
	errs := make([]error, len(digests))
	slots := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i, v := range digests {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i].Manifest, errs[i] = r.Manifest(ctx, model, v)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Aliases = aliasesOf(aliases, out[i].Version)
	}
	sortVersions(out)
	return out, nil
}
