package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"

	"github.com/trainyard/trainyard/internal/demo/component"
	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/nodeimage"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/demo/rootfs"
	"github.com/trainyard/trainyard/internal/demo/tekton"
)

// sourceImages builds every image from Go modules and Debian packages.
type sourceImages struct {
	demo *Demo

	binaries
	node_, tools string // tar files
	key          string // of everything that was built
	nodeImage    string
}

func (s *sourceImages) node() string     { return s.nodeImage }
func (s *sourceImages) ownNetwork() bool { return true }

func (s *sourceImages) hosts() (map[string][]byte, error) { return nil, nil }

// layout is raised when the images that are made of the same parts change.
const layout = "1"

func (s *sourceImages) prepare(ctx context.Context, step *progress.Step) error {
	if err := s.demo.installDebian(ctx, "mmdebstrap"); err != nil {
		return err
	}
	var compiled atomic.Int64
	cached := true
	key := sha256.New()
	fmt.Fprintln(key, layout)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { // beside the compiler: it mostly downloads and unpacks
		maker := rootfs.Maker{Cache: s.demo.Cache, Mirror: s.demo.DebianMirror}
		var err error
		if s.node_, _, err = maker.Make(groupCtx, nodeimage.NodeRootfs()); err != nil {
			return err
		}
		s.tools, _, err = maker.Make(groupCtx, nodeimage.ToolsRootfs())
		return err
	})
	group.Go(func() error {
		builder, err := s.demo.componentBuilder(groupCtx)
		if err != nil {
			return err
		}
		s.binaries = binaries{}
		for _, module := range component.Modules() {
			total := 0
			builder.Total = func(packages int) {
				total = packages
				step.Doing("compiling and linking module %s", module.Name)
			}
			builder.Progress = func(string) {
				n := compiled.Add(1)
				step.Doing("compiling: %d packages of at most %d of module %s (from nothing the three modules take about %s on two cores)", n, total, module.Name, coldBuild)
			}
			compiled.Store(0)
			built, err := builder.Build(groupCtx, module)
			if err != nil {
				return err
			}
			cached = cached && built.Cached
			fmt.Fprintln(key, built.Dir)
			s.add(module, built)
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintln(key, s.node_, s.tools)
	s.key = hex.EncodeToString(key.Sum(nil))[:12]
	step.Doing("making the node image")
	made, err := s.makeNode(ctx)
	if err != nil {
		return err
	}
	if cached && !made {
		step.Done("from source, nothing to build")
	} else {
		step.Done("from source, built")
	}
	return nil
}

// coldBuild is what docs/demo.md measured.
const coldBuild = "10 min"

func (s *sourceImages) makeNode(ctx context.Context) (made bool, err error) {
	kind, err := gomodule.Find(ctx, s.demo.Go, filepath.Join(s.demo.components(), "cluster"), "sigs.k8s.io/kind")
	if err != nil {
		return false, err
	}
	versions, err := component.Modules()[0].Versions(s.demo.components())
	if err != nil {
		return false, err
	}
	version := versions["k8s.io/kubernetes"]
	s.nodeImage = "trainyard/node:" + version + "-" + s.key
	if there, err := s.demo.docker.HasImage(ctx, s.nodeImage); there || err != nil {
		return false, err
	}
	return true, nodeimage.Builder{Docker: s.demo.docker}.Build(ctx, nodeimage.Inputs{
		Image: s.nodeImage, Platform: s.demo.platform(), KubernetesVersion: version, KindModule: kind.Dir,
		NodeRootfs: s.node_, ToolsRootfs: s.tools, Programs: s.binaries,
	})
}

func (s *sourceImages) maker() (fromsource.Maker, error) {
	certificates, err := fromsource.DefaultCertificates()
	return fromsource.Maker{
		Platform: s.demo.platform(), Program: s.program, ToolsRootfs: s.tools, Certificates: certificates,
	}, err
}

// engineImage loads an image into the Docker engine.
func (s *sourceImages) engineImage(ctx context.Context, image string) (string, error) {
	tag, err := name.NewTag("trainyard/" + image + ":" + s.key)
	if err != nil {
		return "", err
	}
	short := "trainyard/" + image + ":" + s.key
	if there, err := s.demo.docker.HasImage(ctx, short); there || err != nil {
		return short, err
	}
	maker, err := s.maker()
	if err != nil {
		return "", err
	}
	made, err := maker.Make(image)
	if err != nil {
		return "", err
	}
	return short, s.demo.load(ctx, func(w io.Writer) error { return tarball.Write(tag, made, w) })
}

// cluster pushes the images that pods use to the demo's registry. Which digests
// they have is kept beside what was built: an image that the registry holds is
// not made again.
func (s *sourceImages) cluster(ctx context.Context, step *progress.Step) (clusterImages, error) {
	releases, err := s.demo.tektonReleases(ctx)
	if err != nil {
		return clusterImages{}, err
	}
	paths, err := tekton.Images(releases...)
	if err != nil {
		return clusterImages{}, err
	}
	maker, err := s.maker()
	if err != nil {
		return clusterImages{}, err
	}
	pushed, err := s.openDigests()
	if err != nil {
		return clusterImages{}, err
	}
	out := clusterImages{Tekton: map[string]string{}}
	for i, path := range paths {
		step.Doing("pushing image %d of %d: %s", i+1, len(paths)+2, fromsource.ProgramName(path))
		out.Tekton[path], err = pushed.push(ctx, "tekton/"+fromsource.ProgramName(path), func() (v1.Image, error) { return maker.Tekton(path) })
		if err != nil {
			return clusterImages{}, err
		}
	}
	for image, reference := range map[string]*string{fromsource.Shell: &out.Shell, fromsource.S3: &out.S3} {
		step.Doing("pushing image %s", image)
		*reference, err = pushed.push(ctx, image, func() (v1.Image, error) { return maker.Make(image) })
		if err != nil {
			return clusterImages{}, err
		}
	}
	step.Doing("making the builder")
	lifecycle, err := s.program("lifecycle")
	if err != nil {
		return clusterImages{}, err
	}
	if out.Builder, out.Run, err = s.demo.createBuilder(ctx, filepath.Dir(lifecycle)); err != nil {
		return clusterImages{}, err
	}
	step.Done("%d images in %s (%d pushed)", len(paths)+2, s.demo.RegistryHost(), pushed.count)
	return out, nil
}

// withGit returns the image of Tekton's git resolver, which cluster has pushed.
func (s *sourceImages) withGit(ctx context.Context) (v1.Image, error) {
	client, err := s.demo.registry()
	if err != nil {
		return nil, err
	}
	reference, err := client.Reference(s.demo.inCluster.Tekton[fromsource.GitImportPath])
	if err != nil {
		return nil, err
	}
	return client.Image(ctx, reference, s.demo.platform())
}

// digests are the digests of images that were made before.
type digests struct {
	file  string
	demo  *Demo
	known map[string]string
	count int
}

func (s *sourceImages) openDigests() (*digests, error) {
	d := &digests{file: filepath.Join(s.demo.Cache, "components", "digests-"+s.key+".json"), demo: s.demo, known: map[string]string{}}
	data, err := os.ReadFile(d.file)
	if os.IsNotExist(err) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(data, &d.known) != nil {
		d.known = map[string]string{} // a cache: made again
	}
	return d, nil
}

// push returns the reference by digest of an image in the demo's registry.
func (d *digests) push(ctx context.Context, repository string, make func() (v1.Image, error)) (string, error) {
	client, err := d.demo.registry()
	if err != nil {
		return "", err
	}
	base := d.demo.RegistryHost() + "/" + repository
	if digest := d.known[repository]; digest != "" {
		reference, err := client.Reference(base + "@" + digest)
		if err != nil {
			return "", err
		}
		if _, err := client.Digest(ctx, reference); err == nil {
			return base + "@" + digest, nil
		}
	}
	image, err := make()
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	reference, err := client.Reference(base + "@" + digest.String())
	if err != nil {
		return "", err
	}
	if err := client.Push(ctx, reference, image); err != nil {
		return "", err
	}
	d.count++
	d.known[repository] = digest.String()
	data, err := json.MarshalIndent(d.known, "", "  ")
	if err != nil {
		return "", err
	}
	return base + "@" + digest.String(), replaceFile(d.file, data, 0o644)
}
