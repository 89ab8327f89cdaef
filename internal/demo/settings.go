package demo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// Settings of the demo. Each has an environment variable, so that make passes
// them on.
type Settings struct {
	// Checkout is the root of the repository.
	Checkout string
	// Cache is the folder for what is built or downloaded.
	Cache string
	// Images is where the images come from: "registry", "source", or "" to choose.
	Images string
	// Mirror is a host that stands in for the public registries, or "".
	Mirror string
	// Lock is the file that pins the digests of published images.
	Lock string
	// Name of the cluster, and of everything of ours in Docker.
	Name string
	// Subnet of the Docker network: a /24.
	Subnet netip.Prefix
	// S3Port and TriggersPort are ports of 127.0.0.1.
	S3Port, TriggersPort int
	// DebianMirror is where Debian's packages come from.
	DebianMirror string
	// Go is the go command.
	Go string
}

// SettingsFrom reads the settings from environment variables.
func SettingsFrom(getenv func(string) string) (Settings, error) {
	or := func(name, other string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return other
	}
	cache := or("TRAINYARD_CACHE", "")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return Settings{}, fmt.Errorf("find a folder for the cache (TRAINYARD_CACHE names one): %w", err)
		}
		cache = filepath.Join(base, "trainyard")
	}
	s := Settings{
		Cache:        cache,
		Images:       getenv("IMAGES"),
		Mirror:       getenv("MIRROR"),
		Lock:         getenv("IMAGES_LOCK"),
		Name:         or("CLUSTER", "trainyard"),
		DebianMirror: getenv("DEBIAN_MIRROR"),
		Go:           or("GO", "go"),
	}
	if s.Images != "" && s.Images != "registry" && s.Images != "source" {
		return Settings{}, fmt.Errorf("IMAGES=%s: say registry or source", s.Images)
	}
	subnet, err := netip.ParsePrefix(or("SUBNET", "172.30.77.0/24"))
	if err != nil || !subnet.Addr().Is4() || subnet.Bits() != 24 || subnet.Masked() != subnet {
		return Settings{}, fmt.Errorf("SUBNET=%s: say a private /24 network, such as 172.30.77.0/24", getenv("SUBNET"))
	}
	s.Subnet = subnet
	for _, port := range []struct {
		name  string
		value *int
		other string
	}{{"S3_PORT", &s.S3Port, "7070"}, {"TRIGGERS_PORT", &s.TriggersPort, "8080"}} {
		number, err := strconv.ParseUint(or(port.name, port.other), 10, 16)
		if err != nil || number == 0 {
			return Settings{}, fmt.Errorf("%s=%s: say a port number", port.name, getenv(port.name))
		}
		*port.value = int(number)
	}
	return s, nil
}

// checkPorts makes sure that the ports of the host are free, and names the
// setting that moves one.
func (s Settings) checkPorts() error {
	for name, port := range map[string]int{"S3_PORT": s.S3Port, "TRIGGERS_PORT": s.TriggersPort} {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it takes no time
		if err != nil {
			return fmt.Errorf("port %d is taken: set %s to another (%w)", port, name, errors.Unwrap(err))
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (s Settings) state() string      { return filepath.Join(s.Cache, "demo", s.Name) }
func (s Settings) kubeconfig() string { return filepath.Join(s.state(), "kubeconfig") }
func (s Settings) components() string { return filepath.Join(s.Checkout, "scripts/components") }
