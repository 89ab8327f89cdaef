package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trainyard/trainyard/internal/demo/certsd"
	"github.com/trainyard/trainyard/internal/demo/component"
	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/demo/published"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// registryImages takes the published images, or what a mirror has of them.
type registryImages struct {
	demo   *Demo
	mirror imagelock.Mirror

	images published.Images
	pinned map[string]imagelock.Pinned // by canonical name
	binaries
	nodeImage string
	own       bool
}

func (r *registryImages) node() string     { return r.nodeImage }
func (r *registryImages) ownNetwork() bool { return r.own }

func (r *registryImages) client() (*registryclient.Client, error) {
	return registryclient.New(registryclient.Options{Insecure: r.mirror.Insecure(), UserAgent: "trainyard-demo"})
}

// prepare builds the three programs that people use, finds every image's digest,
// and gets the node image.
func (r *registryImages) prepare(ctx context.Context, step *progress.Step) error {
	if err := r.buildPrograms(ctx, step); err != nil {
		return err
	}
	var err error
	r.images, err = published.List(func(module string) (gomodule.Module, error) {
		return gomodule.Find(ctx, r.demo.Go, filepath.Join(r.demo.components(), "cluster"), module)
	})
	if err != nil {
		return err
	}
	client, err := r.client()
	if err != nil {
		return err
	}
	lock := r.demo.Lock
	if lock == "" {
		lock = filepath.Join(r.demo.Checkout, "scripts", "images.lock.yaml")
	}
	resolved := 0
	locker := &imagelock.Locker{
		Path: lock, Registry: client, Mirror: r.mirror, Now: time.Now,
		Say: func(string) { resolved++ },
	}
	r.pinned = map[string]imagelock.Pinned{}
	var all []imagelock.Pinned
	for _, image := range r.images.All() {
		step.Doing("finding the digest of %s", image.Name)
		pinned, err := locker.Resolve(ctx, image)
		if err != nil {
			return err
		}
		r.pinned[image.Name] = pinned
		all = append(all, pinned)
	}
	step.Doing("looking whether all images can be had")
	if err := locker.Check(ctx, all...); err != nil {
		return err
	}
	step.Doing("getting the node image")
	if r.nodeImage, err = r.load(ctx, "node", r.images.Node); err != nil {
		return err
	}
	// A node image that was built here has no CNI in it.
	label, err := r.demo.docker.Run(ctx, "image", "inspect", "--format", `{{index .Config.Labels "dev.trainyard.demo"}}`, r.nodeImage)
	if err != nil {
		return err
	}
	r.own = label == "node"
	from := "the public registries"
	if r.mirror.Host != "" {
		from = "mirror " + r.mirror.URL()
	}
	step.Done("%d images of %s", len(all), from)
	if resolved > 0 {
		step.Done("%d images of %s; %d digests are new in %s: commit it", len(all), from, resolved, lock)
	}
	return nil
}

// clientPrograms are what a person's machine needs to talk to a cluster.
var clientPrograms = map[string]bool{"kind": true, "kubectl": true, "tkn": true}

func (r *registryImages) buildPrograms(ctx context.Context, step *progress.Step) error {
	builder, err := r.demo.componentBuilder(ctx)
	if err != nil {
		return err
	}
	module := component.Modules()[0]
	var wanted []component.Program
	for _, program := range module.Programs {
		if clientPrograms[program.Name] {
			wanted = append(wanted, program)
		}
	}
	module.Programs = wanted
	var compiled atomic.Int64
	builder.Progress = func(string) { step.Doing("compiling kind, kubectl and tkn: %d packages", compiled.Add(1)) }
	built, err := builder.Build(ctx, module)
	if err != nil {
		return err
	}
	r.binaries = binaries{}
	r.add(module, built)
	return nil
}

// load puts a published image into the Docker engine, which knows of no mirror,
// and returns the name that it has there.
func (r *registryImages) load(ctx context.Context, role string, image imagelock.Image) (string, error) {
	pinned, found := r.pinned[image.Name]
	if !found {
		return "", fmt.Errorf("%s has no digest", image.Name)
	}
	local := fmt.Sprintf("trainyard/%s:%.12s", role, strings.TrimPrefix(pinned.Digest, "sha256:"))
	if there, err := r.demo.docker.HasImage(ctx, local); there || err != nil {
		return local, err
	}
	client, err := r.client()
	if err != nil {
		return "", err
	}
	reference, err := client.Reference(r.mirror.Name(pinned.Reference()))
	if err != nil {
		return "", err
	}
	fetched, err := client.Image(ctx, reference, r.demo.platform())
	if err != nil {
		return "", err
	}
	tag, err := name.NewTag(local)
	if err != nil {
		return "", err
	}
	return local, r.demo.load(ctx, func(w io.Writer) error {
		return registryclient.Explain("fetch", pinned.Name, tarball.Write(tag, fetched, w))
	})
}

func (r *registryImages) engineImage(ctx context.Context, image string) (string, error) {
	if image == fromsource.Registry {
		return r.load(ctx, image, r.images.Registry)
	}
	return "", fmt.Errorf("no image is called %s", image)
}

// hosts tells nodes to ask the mirror for what is on public registries.
func (r *registryImages) hosts() (map[string][]byte, error) {
	files := map[string][]byte{}
	if r.mirror.Host == "" {
		return files, nil
	}
	contents, err := certsd.Hosts(r.mirror.URL())
	if err != nil {
		return nil, err
	}
	for _, host := range r.images.Hosts() {
		files[certsd.Path(host)] = contents
	}
	return files, nil
}

// cluster returns the images by their public names. The builder and its run image
// are copied into the demo's registry: pods read them without containerd, which
// alone knows of a mirror.
func (r *registryImages) cluster(ctx context.Context, step *progress.Step) (clusterImages, error) {
	out := clusterImages{
		Tekton: map[string]string{},
		Shell:  r.pinned[r.images.Shell.Name].Reference(),
		S3:     r.pinned[r.images.S3.Name].Reference(),
	}
	for path, image := range r.images.Tekton {
		out.Tekton[path] = r.pinned[image.Name].Reference()
	}
	for image, reference := range map[string]*string{r.images.Builder.Name: &out.Builder, r.images.Run.Name: &out.Run} {
		step.Doing("copying %s", image)
		var err error
		if *reference, err = r.copy(ctx, r.pinned[image]); err != nil {
			return clusterImages{}, err
		}
	}
	step.Done("%s, %d images", r.demo.RegistryHost(), len(r.pinned))
	return out, nil
}

// withGit returns the image of Tekton's git resolver.
func (r *registryImages) withGit(ctx context.Context) (v1.Image, error) {
	image, _, err := r.pull(ctx, r.pinned[r.images.Tekton[fromsource.GitImportPath].Name])
	return image, err
}

// pull reads an image for this platform, when it is used.
func (r *registryImages) pull(ctx context.Context, pinned imagelock.Pinned) (v1.Image, name.Reference, error) {
	from, err := r.client()
	if err != nil {
		return nil, nil, err
	}
	reference, err := from.Reference(r.mirror.Name(pinned.Reference()))
	if err != nil {
		return nil, nil, err
	}
	image, err := from.Image(ctx, reference, r.demo.platform())
	return image, reference, err
}

// copy copies an image for this platform into the demo's registry.
func (r *registryImages) copy(ctx context.Context, pinned imagelock.Pinned) (string, error) {
	image, reference, err := r.pull(ctx, pinned)
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	_, repository, _ := strings.Cut(reference.Context().Name(), "/")
	name := r.demo.RegistryHost() + "/" + repository + "@" + digest.String()
	to, err := r.demo.registry()
	if err != nil {
		return "", err
	}
	target, err := to.Reference(name)
	if err != nil {
		return "", err
	}
	if _, err := to.Digest(ctx, target); err == nil {
		return name, nil
	}
	return name, to.Push(ctx, target, image)
}

// reachable says whether the place that images would come from answers.
func reachable(ctx context.Context, mirror imagelock.Mirror) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url := "https://registry-1.docker.io/v2/"
	if mirror.Host != "" {
		url = strings.TrimSuffix(imagelock.Mirror{Host: mirror.Host, PlainHTTP: mirror.PlainHTTP}.URL(), "/") + "/v2/"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK || response.StatusCode == http.StatusUnauthorized
}
