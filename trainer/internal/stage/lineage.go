package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// LineageOptions say whose lineage is shown: that of a model in the registry, or
// of a run directory's candidate.
type LineageOptions struct {
	Target
	Ref        string // alias, version, or its first digits; "" is the target's alias
	RunDir     string // "" asks the registry
	Checkpoint string // of the run directory
	Out        io.Writer
}

// Lineage prints the tree from a model back to corpus, code and machine, after
// comparing every digest with what the store or the run directory holds. The
// error of a tree that does not hold has the code for integrity when a digest
// differs, and that of a failed run when something is missing.
func Lineage(ctx context.Context, o LineageOptions) (*lineage.Report, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if err := o.Target.validate(); err != nil {
		return nil, coded("lineage", err)
	}
	var rep *lineage.Report
	var err error
	if o.RunDir != "" {
		rep, err = runLineage(ctx, o)
	} else {
		rep, err = storeLineage(ctx, o)
	}
	if err != nil {
		return nil, coded("lineage", err)
	}
	if err := rep.Print(o.Out); err != nil {
		return rep, exitcode.Errorf(exitcode.IO, "lineage: %w", err)
	}
	switch n := len(rep.Problems); {
	case rep.Mismatched():
		return rep, exitcode.Errorf(exitcode.Integrity, "lineage: %s, the first: %s", counted(n, "problem"), rep.Problems[0].Sentence)
	case n > 0:
		return rep, exitcode.Errorf(exitcode.Failed, "lineage: %s, the first: %s", counted(n, "problem"), rep.Problems[0].Sentence)
	}
	return rep, nil
}

// runLineage checks a run directory.
func runLineage(ctx context.Context, o LineageOptions) (*lineage.Report, error) {
	if err := validCheckpoint(o.Checkpoint); err != nil {
		return nil, err
	}
	recs, err := lineage.ReadDir(filepath.Join(o.RunDir, lineage.Dir))
	if err != nil {
		return nil, err
	}
	sum, err := modelDigest(filepath.Join(o.RunDir, o.Checkpoint))
	if err != nil {
		return nil, err
	}
	if sum == "" {
		return nil, exitcode.Errorf(exitcode.BadInput, "no model in %s: train first", filepath.Join(o.RunDir, o.Checkpoint))
	}
	files := &lineage.Files{Run: o.RunDir, Model: func(ctx context.Context, a lineage.Artifact) (string, error) {
		if a.Name == train.BestDir || a.Name == train.LastDir {
			sum, err := modelDigest(filepath.Join(o.RunDir, a.Name))
			if err == nil && sum == "" {
				err = fmt.Errorf("%s: %w", a.Name, fs.ErrNotExist)
			}
			return hexDigest(sum), err
		}
		if o.Store == nil {
			return "", lineage.ErrUnchecked
		}
		return versionDigest(ctx, registry.New(o.Store, registry.Options{}), a)
	}}
	return lineage.Verify(ctx, recs, hexDigest(sum), files)
}

// versionDigest asks the registry for a model of another run.
func versionDigest(ctx context.Context, r *registry.Registry, a lineage.Artifact) (string, error) {
	m, err := r.Check(ctx, a.Name, a.SHA256)
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("%s %s: %w", a.Name, a.SHA256, fs.ErrNotExist)
	}
	if err != nil {
		return "", fromStore("registry", err)
	}
	return m.Version, nil
}

// storeLineage checks a version of the registry.
func storeLineage(ctx context.Context, o LineageOptions) (*lineage.Report, error) {
	if o.Store == nil {
		return nil, exitcode.Errorf(exitcode.Usage, "neither a store nor a run directory: set --store or --run-dir")
	}
	reg := registry.New(o.Store, registry.Options{})
	version, err := ResolveVersion(ctx, reg, o.Name, or(o.Ref, o.Alias))
	if err != nil {
		return nil, fromStore("registry", err)
	}
	m, err := reg.Manifest(ctx, o.Name, version)
	if err != nil {
		return nil, fromStore("registry", err)
	}
	c := &versionChecker{store: o.Store, reg: reg, manifest: m, made: map[string]string{}, seen: map[string]bool{}}
	var recs []*lineage.Record
	for _, f := range m.Files {
		if path.Dir(f.Name) != lineage.Dir || path.Ext(f.Name) != ".json" {
			continue
		}
		raw, info, err := store.ReadAll(ctx, o.Store, c.key(f.Name), 8<<20)
		if err != nil {
			return nil, fromStore("lineage record", err)
		}
		if info.SHA256 != f.SHA256 {
			return nil, exitcode.Errorf(exitcode.Integrity, "%s is %s, the manifest says %s", f.Name, info.SHA256, f.SHA256)
		}
		rec, err := lineage.Parse(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		recs = append(recs, rec)
		for _, a := range rec.Outputs {
			if a.Kind == lineage.KindModel {
				c.made[a.Name] = a.SHA256
			}
		}
	}
	lineage.Sort(recs)
	rep, err := lineage.Verify(ctx, recs, version, c)
	if err != nil {
		return nil, err
	}
	return rep, c.rest(ctx, rep)
}

// rest checks the files of the version that no record names, such as its card.
func (c *versionChecker) rest(ctx context.Context, rep *lineage.Report) error {
	for _, f := range c.manifest.Files {
		if c.seen[f.Name] || path.Dir(f.Name) == lineage.Dir {
			continue
		}
		a := lineage.Artifact{Name: f.Name, Kind: lineage.KindFile, SHA256: f.SHA256}
		got, err := c.read(ctx, c.key(f.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			rep.Add(lineage.Missing, "registry", a, fmt.Sprintf("%s of the version is not there", f.Name))
		case err != nil:
			return err
		case got != f.SHA256:
			rep.Add(lineage.Mismatch, "registry", a, fmt.Sprintf("%s of the version is %s, its manifest says %s", f.Name, got, f.SHA256))
		}
		rep.Checked++
	}
	return nil
}

// versionChecker checks artifacts against a store, by reading them.
type versionChecker struct {
	store    store.Store
	reg      *registry.Registry
	manifest registry.Manifest
	made     map[string]string // models of the run by their directory
	seen     map[string]bool   // files of the version that were read
	outside  lineage.Files     // a corpus or policy, where it still lies
}

func (c *versionChecker) key(name string) string {
	return path.Join("models", c.manifest.Model, c.manifest.Version, name)
}

// Digest implements lineage.Checker.
func (c *versionChecker) Digest(ctx context.Context, a lineage.Artifact) (string, error) {
	switch {
	case a.Kind == lineage.KindModel && a.SHA256 == c.manifest.Version:
		return c.file(ctx, registry.Weights)
	case a.Kind == lineage.KindModel && c.made[a.Name] != "":
		return "", lineage.ErrUnchecked // another checkpoint of the run, which stayed there
	case a.Kind == lineage.KindModel:
		return versionDigest(ctx, c.reg, a)
	case a.External():
		sum, err := c.outside.Digest(ctx, a)
		if errors.Is(err, fs.ErrNotExist) {
			err = lineage.ErrUnchecked // it is kept elsewhere
		}
		return sum, err
	}
	for _, f := range c.manifest.Files {
		if f.SHA256 == a.SHA256 {
			return c.file(ctx, f.Name)
		}
	}
	if dir, _, below := strings.Cut(a.Name, "/"); below && c.made[dir] != "" && c.made[dir] != c.manifest.Version {
		return "", lineage.ErrUnchecked
	}
	return c.read(ctx, dataDir+a.SHA256)
}

// file reads a file of the version.
func (c *versionChecker) file(ctx context.Context, name string) (string, error) {
	c.seen[name] = true
	return c.read(ctx, c.key(name))
}

func (c *versionChecker) read(ctx context.Context, key string) (string, error) {
	info, err := c.store.Get(ctx, key, io.Discard)
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	if errors.Is(err, store.ErrIntegrity) {
		return "bytes that are not those of their record", nil
	}
	if err != nil {
		return "", fromStore("read", err)
	}
	return info.SHA256, nil
}

// ResolveVersion finds the version of an alias, a digest, or at least 8 first
// digits of one.
func ResolveVersion(ctx context.Context, r *registry.Registry, name, ref string) (string, error) {
	if len(ref) < 8 || len(ref) >= 64 || strings.Trim(ref, "0123456789abcdef") != "" {
		return r.Resolve(ctx, name, ref)
	}
	versions, err := r.Versions(ctx, name)
	if err != nil {
		return "", err
	}
	found := ""
	for _, v := range versions {
		if !strings.HasPrefix(v.Version, ref) {
			continue
		}
		if found != "" {
			return "", exitcode.Errorf(exitcode.Usage, "%s is the beginning of several versions of %s: give more digits", ref, name)
		}
		found = v.Version
	}
	if found == "" {
		return r.Resolve(ctx, name, ref) // an alias may look like digits
	}
	return found, nil
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
