package imagelock

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Mirror is a registry that stands in for all public ones: it has their
// repositories under the same paths, without the public host's name. The zero
// Mirror is none.
type Mirror struct {
	// Host is a host, or host:port.
	Host string
	// Prefix goes before every path: the project of a registry that has projects.
	Prefix string
	// PlainHTTP says that it has no TLS.
	PlainHTTP bool
}

// ParseMirror reads [http://]HOST[:PORT][/PREFIX]. TLS is used unless http:// is
// written; nothing else tells.
func ParseMirror(text string) (Mirror, error) {
	if text == "" {
		return Mirror{}, nil
	}
	rest, plain := strings.CutPrefix(text, "http://")
	if !plain {
		rest = strings.TrimPrefix(rest, "https://")
	}
	rest = strings.TrimSuffix(rest, "/")
	host, prefix, _ := strings.Cut(rest, "/")
	// The library makes of "hub:/a" and of "a//b" what nobody means.
	_, err := name.NewRepository(rest+"/image", name.StrictValidation)
	if err != nil || host == "" || strings.HasSuffix(host, ":") || strings.Contains(rest+"/", "//") {
		return Mirror{}, exitcode.Errorf(exitcode.Usage, "mirror %q: want [http://]HOST[:PORT][/PREFIX]", text)
	}
	return Mirror{Host: host, Prefix: prefix, PlainHTTP: plain}, nil
}

// Name returns where the mirror has a public image; without a mirror that is where
// the name says.
func (m Mirror) Name(image string) string {
	if m.Host == "" {
		return image
	}
	_, path, _ := strings.Cut(image, "/")
	if m.Prefix != "" {
		path = m.Prefix + "/" + path
	}
	return m.Host + "/" + path
}

// URL returns where the mirror is, as package certsd takes it.
func (m Mirror) URL() string {
	url := "https://" + m.Host
	if m.PlainHTTP {
		url = "http://" + m.Host
	}
	if m.Prefix != "" {
		url += "/" + m.Prefix
	}
	return url
}

// Insecure lists the hosts that a client must be allowed to speak plain http to.
func (m Mirror) Insecure() []string {
	if m.PlainHTTP {
		return []string{m.Host}
	}
	return nil
}
