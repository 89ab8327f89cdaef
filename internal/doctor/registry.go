package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// registry examines, with the credentials of the cluster, that the builder can be
// read and the image be pushed.
func (e *exam) registry(ctx context.Context) error {
	credentials, err := e.registryCredentials(ctx)
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: e.Dial}
	defer transport.CloseIdleConnections()
	insecure := e.insecure()
	client, err := registryclient.New(registryclient.Options{
		Insecure: insecure, Keychain: credentials, Transport: transport, UserAgent: "yard-doctor",
		Backoff: remote.Backoff{Duration: 1, Factor: 1, Steps: 1}, // what is down now is the finding
	})
	if err != nil {
		return err
	}
	probe := registryProbe{client, credentials, transport}
	if builder := cmp.Or(e.o.Builder, e.param("builder-image", "builder")); builder != "" {
		if err := e.builder(ctx, probe, builder); err != nil {
			return err
		}
	} else {
		e.ok("builder", "no builder is named here: it was not looked at (--builder)")
	}
	if image := cmp.Or(e.o.Image, e.param("image", "app-image")); image != "" {
		if err := e.image(ctx, probe, image); err != nil {
			return err
		}
	} else {
		e.ok("registry", "no image is named here: whether it could be pushed was not looked at (--image)")
	}
	for _, b := range e.bundles {
		if err := e.readable(ctx, probe, "bundle", b); err != nil {
			return err
		}
	}
	return nil
}

func (e *exam) insecure() []string {
	if len(e.o.InsecureRegistries) > 0 {
		return e.o.InsecureRegistries
	}
	for _, n := range insecureNames() {
		if l := e.lists[n]; len(l) > 0 {
			return l
		}
	}
	return split(e.param(insecureNames()...))
}

func insecureNames() []string { return []string{"insecure-registries", "insecure-registry"} }

// param is the value of the first parameter that has one of these names.
func (e *exam) param(names ...string) string {
	for _, n := range names {
		if v, known := e.params.fill(e.params[n]); known && v != "" {
			return v
		}
	}
	return ""
}

type registryProbe struct {
	client      *registryclient.Client
	credentials dockerConfig
	transport   *http.Transport
}

// reference parses an image name and finds out whether its registry can be asked.
func (e *exam) reference(ctx context.Context, p registryProbe, check, image string) (name.Reference, bool, error) {
	ref, err := p.client.Reference(image)
	if err != nil {
		e.problem(check, "correct the name", "%v", err)
		return nil, false, nil
	}
	ok, err := e.reachable(ctx, check, "the registry", ref.Context().RegistryStr())
	return ref, ok, err
}

// builder examines that the builder can be read and is one.
func (e *exam) builder(ctx context.Context, p registryProbe, image string) error {
	ref, ok, err := e.reference(ctx, p, "builder", image)
	if err != nil || !ok {
		return err
	}
	if _, pinned := ref.(name.Digest); !pinned {
		d, err := p.client.Digest(ctx, ref)
		if err != nil {
			return e.registryFailed(ctx, "builder", err)
		}
		e.warn("builder", "name it as "+ref.Context().Name()+"@"+d.String(), "the builder %s is named by tag: it may change between two builds", image)
	}
	b, err := builderimage.Inspect(ctx, p.client, ref, v1.Platform{OS: "linux", Architecture: e.architecture(ctx)})
	if exitcode.Of(err) == exitcode.BadInput && !errors.Is(err, registryclient.ErrNotFound) {
		e.problem("builder", "name an image that pack builder create or yard builder create made, for the architecture of the nodes", "%v", err)
		return nil
	}
	if err != nil {
		return e.registryFailed(ctx, "builder", err)
	}
	said := fmt.Sprintf("the builder %s can be read; it builds as %d:%d with lifecycle %s", image, b.UID, b.GID, b.Lifecycle)
	if len(b.Go) > 0 {
		said += " and Go " + and(first(b.Go, 4))
	}
	e.ok("builder", "%s", said)
	return nil
}

// architecture is that of the nodes.
func (e *exam) architecture(ctx context.Context) string {
	if nodes, err := e.nodes(ctx); err == nil && len(nodes) > 0 && nodes[0].Status.NodeInfo.Architecture != "" {
		return nodes[0].Status.NodeInfo.Architecture
	}
	return "amd64"
}

// image examines that the image can be pushed.
func (e *exam) image(ctx context.Context, p registryProbe, image string) error {
	ref, ok, err := e.reference(ctx, p, "registry", image)
	if err != nil || !ok {
		return err
	}
	if _, pinned := ref.(name.Digest); pinned {
		// A pipeline that starts from an image that exists.
		return e.readable(ctx, p, "image", image)
	}
	if _, err := name.NewTag(image, name.StrictValidation); err != nil {
		e.problem("registry", "name it as "+ref.Context().Name()+":TAG", "the image %s that is built has no tag, and the build wants one", image)
		return nil
	}
	// Reading first: it goes through the client's rule about plain http, and tells
	// a registry that is down from one that forbids pushing.
	if _, err := p.client.Digest(ctx, ref); err != nil && !errors.Is(err, registryclient.ErrNotFound) && !errors.Is(err, registryclient.ErrDenied) {
		return e.registryFailed(ctx, "registry", err)
	}
	if err := remote.CheckPushPermission(ref, p.credentials, p.transport); err != nil {
		return e.registryFailed(ctx, "registry", registryclient.Explain("push to", ref.Context().Name(), err))
	}
	e.ok("registry", "%s can be pushed to", ref.Context().Name())
	return nil
}

func (e *exam) readable(ctx context.Context, p registryProbe, check, image string) error {
	ref, ok, err := e.reference(ctx, p, check, image)
	if err != nil || !ok {
		return err
	}
	if _, err := p.client.Digest(ctx, ref); err != nil {
		return e.registryFailed(ctx, check, err)
	}
	e.ok(check, "the %s %s can be read", check, image)
	return nil
}

// registryFailed reports what a registry refused; only a cancelled examination is
// an error of the examination.
func (e *exam) registryFailed(ctx context.Context, check string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, declared := e.params[insecureNames()[0]]
	if exitcode.Of(err) == exitcode.Usage && !declared && len(e.o.InsecureRegistries) == 0 {
		// Only nodes pull from it then, by their own settings.
		e.warn(check, "allow it here with --insecure-registry, to have it looked at", "%v; the run does not depend on that, and it was not looked at", err)
		return nil
	}
	remedy := "look whether the registry runs and the name is right"
	switch {
	case errors.Is(err, registryclient.ErrDenied):
		remedy = fmt.Sprintf("correct the credentials in Secret %s: they are what the cluster uses", e.registrySecret())
	case errors.Is(err, registryclient.ErrNotFound):
		remedy = "correct the name, or push the image"
	default:
		if c, ok := causeOf(err.Error()); ok {
			remedy = c.remedy
		}
	}
	e.problem(check, remedy, "%v", err)
	return nil
}
