package registryclient

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Options says how to reach registries. The zero value is TLS with the user's
// docker credentials.
type Options struct {
	// Insecure lists the hosts (host or host:port, as in image names) that may be
	// spoken to in plain http. All others need TLS, wherever they are.
	Insecure []string
	// Keychain finds credentials; nil reads docker's configuration where HOME and
	// DOCKER_CONFIG say.
	Keychain authn.Keychain
	// Transport is cloned; nil means http.DefaultTransport.
	Transport *http.Transport
	// UserAgent names the program to registries.
	UserAgent string
	// Backoff says how long to wait before a request that failed is sent again;
	// the zero value is a second, then three.
	Backoff remote.Backoff
}

// Client reads and writes images. It is safe for use by several goroutines.
type Client struct {
	insecure []string
	guard    *guard
	options  []remote.Option
}

// New returns a client. A host that is no host is a usage error.
func New(o Options) (*Client, error) {
	insecure, err := parseHosts(o.Insecure)
	if err != nil {
		return nil, err
	}
	base := o.Transport
	if base == nil {
		var ok bool
		if base, ok = http.DefaultTransport.(*http.Transport); !ok {
			base = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
	}
	keychain := o.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	// A clone: what is set for one registry must not reach the whole process.
	g := &guard{next: base.Clone(), insecure: insecure}
	options := []remote.Option{
		remote.WithTransport(g),
		remote.WithAuthFromKeychain(keychain),
	}
	if o.UserAgent != "" {
		options = append(options, remote.WithUserAgent(o.UserAgent))
	}
	if o.Backoff != (remote.Backoff{}) {
		options = append(options, remote.WithRetryBackoff(o.Backoff))
	}
	return &Client{insecure, g, options}, nil
}

// Options are for calls of package remote that this package has no method for;
// their errors want Explain.
func (c *Client) Options(ctx context.Context) []remote.Option {
	return append(slices.Clone(c.options), remote.WithContext(ctx))
}

// Reference parses an image name with tag or digest; without either it means the
// tag latest, without a host Docker Hub.
func (c *Client) Reference(s string) (name.Reference, error) {
	ref, err := name.ParseReference(s)
	if err != nil {
		return nil, badName(s, err)
	}
	if !c.listed(ref) {
		return ref, nil
	}
	// The mark only makes the library try plain http when TLS does not answer; the
	// guard is what allows it.
	ref, err = name.ParseReference(s, name.Insecure)
	if err != nil {
		return nil, badName(s, err)
	}
	return ref, nil
}

func (c *Client) listed(ref name.Reference) bool {
	return slices.Contains(c.insecure, ref.Context().RegistryStr())
}

// Get fetches the manifest or index that ref names.
func (c *Client) Get(ctx context.Context, ref name.Reference) (*remote.Descriptor, error) {
	d, err := remote.Get(ref, c.Options(ctx)...)
	if err != nil {
		return nil, Explain("read", ref.Name(), err)
	}
	return d, nil
}

// Digest returns the digest of the manifest or index that ref names.
func (c *Client) Digest(ctx context.Context, ref name.Reference) (v1.Hash, error) {
	// GET, not HEAD: a HEAD's error has no body to tell the reason, and the digest
	// of what was read cannot be forged by a header.
	d, err := c.Get(ctx, ref)
	if err != nil {
		return v1.Hash{}, err
	}
	return d.Digest, nil
}

// Image fetches the image that ref names; of an index, that of the platform.
func (c *Client) Image(ctx context.Context, ref name.Reference, platform v1.Platform) (v1.Image, error) {
	img, err := remote.Image(ref, append(c.Options(ctx), remote.WithPlatform(platform))...)
	if err != nil {
		return nil, Explain("read", ref.Name(), err)
	}
	return img, nil
}

// Config fetches an image and its configuration: everything but the layers.
func (c *Client) Config(ctx context.Context, ref name.Reference, platform v1.Platform) (v1.Image, *v1.ConfigFile, error) {
	img, err := c.Image(ctx, ref, platform)
	if err != nil {
		return nil, nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, nil, Explain("read the configuration of", ref.Name(), err)
	}
	return img, config, nil
}

// Push writes an image or an index under ref, layers first: ref is there whole or
// not at all.
func (c *Client) Push(ctx context.Context, ref name.Reference, t remote.Taggable) error {
	var err error
	switch t := t.(type) {
	case v1.Image:
		err = remote.Write(ref, t, c.Options(ctx)...)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, t, c.Options(ctx)...)
	default:
		err = remote.Put(ref, t, c.Options(ctx)...)
	}
	return Explain("write", ref.Name(), err)
}

// Tag gives what is in the registry already another tag.
func (c *Client) Tag(ctx context.Context, tag name.Tag, t remote.Taggable) error {
	return Explain("tag", tag.Name(), remote.Tag(tag, t, c.Options(ctx)...))
}
