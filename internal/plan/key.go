package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/builderimage"
)

// inputs are everything that can change the bits of an image. Their order and
// names are part of the key.
type inputs struct {
	Version     int                  `json:"v"`
	Source      string               `json:"source"`
	Builder     string               `json:"builder"`
	RunImage    string               `json:"run"`
	PlatformAPI string               `json:"api"`
	OS          string               `json:"os"`
	Arch        string               `json:"arch"`
	Env         []string             `json:"env"`
	Order       []builderimage.Group `json:"order,omitempty"`
	ProcessType string               `json:"process,omitempty"`
	Created     string               `json:"created,omitempty"`
}

// Key is the digest of the inputs, in hexadecimal.
func (in inputs) Key() (string, error) {
	in.Version = 1
	slices.Sort(in.Env)
	b, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// tag is the tag of a key. 160 bits are enough to never meet another, and the tag
// stays readable.
func tag(key string) string { return "src-" + key[:40] }

// route tells whether a variable only says how modules are reached, not what they
// are: go.sum holds their digests. A mirror that moves must not rebuild anything.
func route(name string) bool {
	switch strings.ToUpper(name) {
	case "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOVCS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR":
		return true
	}
	return false
}
