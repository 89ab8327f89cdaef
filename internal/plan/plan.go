package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/appimage"
	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/project"
	"github.com/trainyard/trainyard/internal/registryclient"
	"github.com/trainyard/trainyard/internal/result"
	"github.com/trainyard/trainyard/internal/source"
)

// maxDescriptor bounds what is read as a project descriptor.
const maxDescriptor = 1 << 20

// Make makes a plan and writes it to o.Out. On an error the folder is as it was.
func Make(ctx context.Context, c *registryclient.Client, o Options) (*File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	clean, err := prepare(o.Out)
	if err != nil {
		return nil, err
	}
	f, err := plan(ctx, c, o)
	if err != nil {
		clean()
		return nil, err
	}
	return f, nil
}

func plan(ctx context.Context, c *registryclient.Client, o Options) (*File, error) {
	checkout, err := source.Open(o.Workspace, o.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = checkout.Close() }()
	p, err := readProject(checkout, o.Descriptor)
	if err != nil {
		return nil, err
	}
	for _, w := range p.Warnings {
		o.Log("%s: %s", o.Descriptor, w)
	}
	image, err := imageTag(c, o)
	if err != nil {
		return nil, err
	}
	b, err := builder(ctx, c, o, p)
	if err != nil {
		return nil, err
	}
	f := &File{
		Schema: schema, Action: Phases, Image: image.Name(),
		Builder: b.Name, BuilderDigest: b.Digest, UID: b.UID, GID: b.GID, Lifecycle: b.Lifecycle, OS: b.OS, Arch: b.Arch,
		CacheImage: o.CacheImage, Insecure: compact(o.Insecure), ProcessType: o.ProcessType, Created: o.Created, Revision: o.Revision,
	}
	if o.Creator {
		f.Action = Creator
	}
	if f.PlatformAPI, err = fit(b, f.Insecure); err != nil {
		return nil, err
	}
	if f.RunImage, err = runImage(ctx, c, o, b, image.Context()); err != nil {
		return nil, err
	}
	groups, err := order(p, b)
	if err != nil {
		return nil, err
	}
	vars, err := f.takeSource(ctx, checkout, o, p, b)
	if err != nil {
		return nil, err
	}
	in := inputs{
		Source: f.SourceDigest, Builder: f.BuilderDigest, RunImage: f.Want().RunImageDigest, PlatformAPI: f.PlatformAPI,
		OS: f.OS, Arch: f.Arch, Order: groups, ProcessType: f.ProcessType, Created: f.Created,
	}
	for _, v := range vars {
		if !route(v.Name) {
			in.Env = append(in.Env, v.Name+"="+v.Value)
		}
	}
	if f.Key, err = in.Key(); err != nil {
		return nil, err
	}
	f.Build = image.Context().Tag(tag(f.Key)).Name()
	// The names are known now, and the digests' lengths: what would not fit later is
	// refused before anything is built.
	if err := result.Check(f.Results(image.Context().Name(), f.SourceDigest, image.Context().Name()+"@"+f.SourceDigest)); err != nil {
		return nil, err
	}
	if err := f.checkCache(c); err != nil {
		return nil, err
	}
	if err := f.find(ctx, c, o); err != nil {
		return nil, err
	}
	if err := writeEnvironment(filepath.Join(o.Out, PlatformDir), vars); err != nil {
		return nil, err
	}
	if f.Order = groups != nil; f.Order {
		if err := writeOrder(o.Out, groups); err != nil {
			return nil, err
		}
	}
	return f, f.write(o.Out)
}

// prepare makes the folder of the plan and returns what undoes that, and all that is
// written later.
func prepare(out string) (clean func(), err error) {
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, exitcode.New(exitcode.IO, err)
		}
		return func() { _ = os.RemoveAll(out) }, nil
	case err != nil:
		return nil, exitcode.New(exitcode.IO, err)
	}
	for _, e := range entries {
		if e.Name() == FileName || e.Name() == SourceDir || e.Name() == PlatformDir {
			return nil, exitcode.Errorf(exitcode.Conflict, "%s holds another plan: name an empty folder", out)
		}
	}
	return func() {
		for _, n := range []string{SourceDir, PlatformDir, OrderFile, FileName} {
			_ = os.RemoveAll(filepath.Join(out, n))
		}
	}, nil
}

// readProject reads the descriptor, which must lie in the checkout.
func readProject(checkout *os.Root, descriptor string) (*project.Project, error) {
	in, err := checkout.Open(descriptor)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "project descriptor in %s: %w", checkout.Name(), err)
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(io.LimitReader(in, maxDescriptor+1))
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "project descriptor %s: %w", descriptor, err)
	}
	return project.Parse(content, descriptor)
}

// imageTag reads the name of the image: a tag that is written out, since "latest"
// by silence is how images get lost.
func imageTag(c *registryclient.Client, o Options) (name.Tag, error) {
	ref, err := c.Reference(o.Image)
	if err != nil {
		return name.Tag{}, err
	}
	t, ok := ref.(name.Tag)
	if !ok || !strings.HasSuffix(o.Image, ":"+t.TagStr()) {
		return name.Tag{}, exitcode.Errorf(exitcode.BadInput, "image %q names no tag: want host/repository:tag", o.Image)
	}
	return t, nil
}

// builder inspects the builder. It must be named by digest: the phases run the image
// that the task names, and a tag could be another one by then.
func builder(ctx context.Context, c *registryclient.Client, o Options, p *project.Project) (*builderimage.Builder, error) {
	ref, err := c.Reference(o.Builder)
	if err != nil {
		return nil, err
	}
	if _, ok := ref.(name.Digest); !ok {
		digest, err := c.Digest(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("builder: %w", err)
		}
		return nil, exitcode.Errorf(exitcode.BadInput, "builder %s is named by tag, which may be another image when the phases run: it is now %s: name that",
			o.Builder, ref.Context().Digest(digest.String()).Name())
	}
	if p.Builder != "" && !strings.HasPrefix(p.Builder, strings.Split(o.Builder, "@")[0]) {
		o.Log("%s names builder %s, %s was asked for and is used", o.Descriptor, p.Builder, o.Builder)
	}
	return builderimage.Inspect(ctx, c, ref, o.Platform)
}

// fit compares the builder with what the phases here can do.
func fit(b *builderimage.Builder, insecure []string) (platformAPI string, err error) {
	who := fmt.Sprintf("builder %s (lifecycle %s)", b.Name, b.Lifecycle)
	api, err := builderimage.Negotiate(platformAPIs(), b.PlatformAPIs)
	if err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "%s supports platform API %s, this task %s: use a builder with a lifecycle that has one of these (the lifecycle would exit with 11)",
			who, strings.Join(b.PlatformAPIs, ", "), strings.Join(platformAPIs(), ", "))
	}
	if b.Extensions {
		return "", exitcode.Errorf(exitcode.BadInput, "%s has image extensions, this task runs without root and cannot apply them: use a builder without extensions", who)
	}
	if len(insecure) > 0 && builderimage.CompareVersions(api, "0.13") < 0 {
		return "", exitcode.Errorf(exitcode.BadInput, "%s supports platform API %s at most, insecure registries %s need 0.13: use a newer builder, or TLS",
			who, api, strings.Join(insecure, ", "))
	}
	for _, bp := range b.Buildpacks {
		if bp.API != "" && len(b.BuildpackAPIs) > 0 && !builderimage.Has(b.BuildpackAPIs, bp.API) {
			return "", exitcode.Errorf(exitcode.BadInput, "%s supports buildpack API %s, its buildpack %s %s needs %s: use another builder (the lifecycle would exit with 12)",
				who, strings.Join(b.BuildpackAPIs, ", "), bp.ID, bp.Version, bp.API)
		}
	}
	return api, nil
}

// runImage finds the base of the image as the lifecycle would: the one that was
// asked for, or the builder's, preferring a mirror on the registry of the image. It
// returns a name by digest, so that every phase uses the same one.
func runImage(ctx context.Context, c *registryclient.Client, o Options, b *builderimage.Builder, repo name.Repository) (string, error) {
	candidates := []string{o.RunImage}
	if o.RunImage == "" {
		if len(b.RunImages) == 0 || b.RunImages[0].Image == "" {
			return "", exitcode.Errorf(exitcode.BadInput, "builder %s names no run image, and none was asked for: name one", b.Name)
		}
		candidates = append([]string{b.RunImages[0].Image}, b.RunImages[0].Mirrors...)
		slices.SortStableFunc(candidates, func(x, y string) int { return near(c, y, repo) - near(c, x, repo) })
	}
	var first error
	for _, candidate := range candidates {
		ref, err := c.Reference(candidate)
		if err == nil {
			var found string
			if found, err = resolveRun(ctx, c, ref, o); err == nil {
				return found, nil
			}
		}
		if first == nil {
			first = err
		}
		o.Log("run image %s cannot be used: %v", candidate, err)
	}
	return "", fmt.Errorf("run image: %w", first)
}

// near is 1 for an image on the registry of the repository.
func near(c *registryclient.Client, image string, repo name.Repository) int {
	if ref, err := c.Reference(image); err == nil && ref.Context().RegistryStr() == repo.RegistryStr() {
		return 1
	}
	return 0
}

func resolveRun(ctx context.Context, c *registryclient.Client, ref name.Reference, o Options) (string, error) {
	img, config, err := c.Config(ctx, ref, o.Platform)
	if err != nil {
		return "", err
	}
	if config.OS != o.Platform.OS || config.Architecture != o.Platform.Architecture {
		return "", exitcode.Errorf(exitcode.BadInput, "%s is for %s/%s, this machine is %s/%s", ref.Name(), config.OS, config.Architecture, o.Platform.OS, o.Platform.Architecture)
	}
	if err := appimage.CheckUser(config.Config.User); err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "%s: %w", ref.Name(), err)
	}
	d, err := img.Digest()
	if err != nil {
		return "", registryclient.Explain("read", ref.Name(), err)
	}
	return ref.Context().Digest(d.String()).Name(), nil
}

// takeSource copies the source and checks it against the builder. It returns the
// environment of the buildpacks.
func (f *File) takeSource(ctx context.Context, checkout *os.Root, o Options, p *project.Project, b *builderimage.Builder) ([]project.Variable, error) {
	filter, err := source.NewFilter(p.Include, p.Exclude)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", o.Descriptor, err)
	}
	root, err := source.Sub(checkout, o.Folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	copied := filepath.Join(o.Out, SourceDir)
	tree, err := source.Copy(ctx, root, filter, copied)
	if err != nil {
		return nil, err
	}
	f.SourceDigest = tree.Digest
	f.Labels = Labels(tree.Digest, b.Digest)
	assignments := slices.Clone(o.Env)
	if o.CAFile != "" {
		if _, err := os.Stat(o.CAFile); err == nil {
			assignments = append([]string{"SSL_CERT_FILE=" + o.CAFile}, assignments...)
		}
	}
	vars, err := Environment(p, assignments, f.Labels)
	if err != nil {
		return nil, err
	}
	g, err := inspectGo(copied)
	if err != nil {
		return nil, err
	}
	if err := g.check(b, vars); err != nil {
		return nil, err
	}
	if _, err := root.Stat("vendor/modules.txt"); err == nil && !g.vendored {
		o.Log("the source has vendor/, but %s does not include it: modules are downloaded", o.Descriptor)
	}
	o.Log("source: %d files, %d bytes, %s; %s", tree.Files, tree.Bytes, tree.Digest, g.describe(vars))
	return vars, nil
}

// checkCache refuses a cache image that would overwrite what is built.
func (f *File) checkCache(c *registryclient.Client) error {
	if f.CacheImage == "" {
		return nil
	}
	ref, err := c.Reference(f.CacheImage)
	if err != nil {
		return err
	}
	if ref.Name() == f.Image || ref.Name() == f.Build {
		return exitcode.Errorf(exitcode.BadInput, "cache image %s is the image itself: use another tag", f.CacheImage)
	}
	return nil
}

// find looks for an image that was built from the same inputs.
func (f *File) find(ctx context.Context, c *registryclient.Client, o Options) error {
	if o.Rebuild {
		return nil
	}
	ref, err := c.Reference(f.Build)
	if err != nil {
		return err
	}
	img, err := appimage.Read(ctx, c, ref)
	if errors.Is(err, registryclient.ErrNotFound) {
		o.Log("not built before: %s is not there", f.Build)
		return nil
	}
	if err == nil {
		err = img.Check(f.Want())
	}
	if errors.Is(err, registryclient.ErrDenied) {
		// Registries say so of repositories that the first push makes, too. Where the
		// credentials are wrong, the first phase tells.
		o.Log("cannot look for an earlier build: %v", err)
		return nil
	}
	switch code := exitcode.Of(err); {
	case code == exitcode.Integrity || code == exitcode.BadInput:
		// Somebody else's image under our tag: a build replaces it.
		o.Log("what is there is not used: %v", err)
		return nil
	case err != nil:
		return err
	}
	f.Action, f.FoundDigest = Found, img.Digest
	o.Log("built before: %s is %s", f.Build, img.Digest)
	return nil
}

// compact drops the empty entries that an empty parameter leaves.
func compact(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
