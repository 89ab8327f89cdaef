package demo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
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
	// Programs that are run in other folders get paths in it.
	cache, err := filepath.Abs(cache)
	if err != nil {
		return Settings{}, fmt.Errorf("TRAINYARD_CACHE=%s: %w", getenv("TRAINYARD_CACHE"), err)
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
	if len(s.Name) > 40 || !clusterName.MatchString(s.Name) {
		return Settings{}, fmt.Errorf("CLUSTER=%s: say a name of at most 40 lower-case letters, digits and single hyphens", s.Name)
	}
	subnet, err := netip.ParsePrefix(or("SUBNET", "172.30.77.0/24"))
	if err != nil || !subnet.Addr().Is4() || subnet.Bits() != 24 || subnet.Masked() != subnet || !subnet.Addr().IsPrivate() {
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
	if s.S3Port == s.TriggersPort {
		return Settings{}, fmt.Errorf("S3_PORT and TRIGGERS_PORT are both %d: set one of them to another", s.S3Port)
	}
	return s, nil
}

// clusterName is what a name must be to end up in those of a kind cluster, of
// host names, Docker containers and networks, and of a folder that make down
// removes.
var clusterName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)

// checkPorts makes sure that the ports of the host are free, and names the
// setting that moves one.
func (s Settings) checkPorts() error {
	for _, port := range []struct {
		setting string
		number  int
	}{{"S3_PORT", s.S3Port}, {"TRIGGERS_PORT", s.TriggersPort}} {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port.number)))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("port %d of 127.0.0.1 is taken: set %s to another", port.number, port.setting)
		case err != nil:
			return fmt.Errorf("port %d of 127.0.0.1 cannot be used: set %s to another: %w", port.number, port.setting, err)
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
