package demo

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// variables is an environment.
type variables map[string]string

func (v variables) get(name string) string { return v[name] }

func TestSettingsFromNothingAreThoseOfTheDocumentation(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/home/somebody/.cache")
	got, err := SettingsFrom(variables{}.get)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Cache: "/home/somebody/.cache/trainyard", Name: "trainyard", Subnet: netip.MustParsePrefix("172.30.77.0/24"),
		S3Port: 7070, TriggersPort: 8080, Go: "go",
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsFromEveryVariable(t *testing.T) {
	got, err := SettingsFrom(variables{
		"TRAINYARD_CACHE": "/big/cache", "IMAGES": "registry", "MIRROR": "http://mirror.test:5000", "IMAGES_LOCK": "/etc/lock.yaml",
		"CLUSTER": "second-1", "SUBNET": "10.1.2.0/24", "S3_PORT": "17070", "TRIGGERS_PORT": "18080",
		"DEBIAN_MIRROR": "http://debian.test/debian", "GO": "/opt/go/bin/go",
	}.get)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Cache: "/big/cache", Images: "registry", Mirror: "http://mirror.test:5000", Lock: "/etc/lock.yaml",
		Name: "second-1", Subnet: netip.MustParsePrefix("10.1.2.0/24"), S3Port: 17070, TriggersPort: 18080,
		DebianMirror: "http://debian.test/debian", Go: "/opt/go/bin/go",
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestACacheIsAnAbsolutePath(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := SettingsFrom(variables{"TRAINYARD_CACHE": "cache"}.get)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.Abs("cache"); got.Cache != want {
		t.Errorf("the cache is %s, want %s", got.Cache, want)
	}
}

func TestSettingsFromRefuses(t *testing.T) {
	tests := map[string]struct {
		variables variables
		want      string // in the error, beside the variable's name
	}{
		"a source of images that is none":   {variables{"IMAGES": "docker"}, "IMAGES=docker: say registry or source"},
		"a network that is none":            {variables{"SUBNET": "docker0"}, "SUBNET=docker0"},
		"an IPv6 network":                   {variables{"SUBNET": "fd00::/24"}, "SUBNET=fd00::/24"},
		"a network of another size":         {variables{"SUBNET": "172.30.0.0/16"}, "SUBNET=172.30.0.0/16"},
		"an address for a network":          {variables{"SUBNET": "172.30.77.1/24"}, "SUBNET=172.30.77.1/24"},
		"somebody's network":                {variables{"SUBNET": "9.9.9.0/24"}, "SUBNET=9.9.9.0/24: say a private /24 network"},
		"a port that is a word":             {variables{"S3_PORT": "s3"}, "S3_PORT=s3: say a port number"},
		"port 0":                            {variables{"TRIGGERS_PORT": "0"}, "TRIGGERS_PORT=0: say a port number"},
		"a port beyond the last":            {variables{"TRIGGERS_PORT": "65536"}, "TRIGGERS_PORT=65536: say a port number"},
		"a negative port":                   {variables{"S3_PORT": "-1"}, "S3_PORT=-1: say a port number"},
		"one port for two":                  {variables{"S3_PORT": "8080"}, "S3_PORT and TRIGGERS_PORT are both 8080"},
		"a name that leads elsewhere":       {variables{"CLUSTER": "../.."}, "CLUSTER=../..: say a name"},
		"a name with a folder":              {variables{"CLUSTER": "a/b"}, "CLUSTER=a/b"},
		"a name that is an option":          {variables{"CLUSTER": "--all"}, "CLUSTER=--all"},
		"a name in capitals":                {variables{"CLUSTER": "Demo"}, "CLUSTER=Demo"},
		"a name that ends in a hyphen":      {variables{"CLUSTER": "demo-"}, "CLUSTER=demo-"},
		"a name with two lines":             {variables{"CLUSTER": "demo\n"}, "CLUSTER=demo"},
		"a name longer than host names are": {variables{"CLUSTER": strings.Repeat("a", 41)}, "at most 40"},
		"the same, with hyphens":            {variables{"CLUSTER": "a" + strings.Repeat("-a", 20)}, "at most 40"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := SettingsFrom(test.variables.get)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestCheckPortsNamesTheTakenPortAndItsSetting(t *testing.T) {
	free, taken := listen(t), listen(t)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		s3, triggers net.Listener
		setting      string
	}{
		"S3's":       {taken, free, "S3_PORT"},
		"Triggers'":  {free, taken, "TRIGGERS_PORT"},
		"both taken": {taken, taken, "S3_PORT"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Settings{S3Port: port(test.s3), TriggersPort: port(test.triggers)}.checkPorts()
			want := "port " + strconv.Itoa(port(taken)) + " of 127.0.0.1 is taken: set " + test.setting + " to another"
			if err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
	other := listen(t)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (Settings{S3Port: port(free), TriggersPort: port(other)}).checkPorts(); err != nil {
		t.Errorf("with free ports: %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func port(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
