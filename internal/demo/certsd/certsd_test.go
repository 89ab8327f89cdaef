package certsd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/trainyard/trainyard/internal/demo/certsd"
)

func TestHostsNamesTheServerAlone(t *testing.T) {
	// What containerd 2.4.2 makes of the files was looked at with its own package
	// core/remotes/docker/config: one host, with this scheme, host and path.
	tests := map[string]map[string]any{
		"http://172.30.77.200:5000":          {"server": "http://172.30.77.200:5000"},
		"https://mirror.test":                {"server": "https://mirror.test"},
		"https://mirror.test/":               {"server": "https://mirror.test"},
		"http://harbor.test:8080/public/all": {"server": "http://harbor.test:8080/v2/public/all", "override_path": true},
	}
	for server, want := range tests {
		t.Run(server, func(t *testing.T) {
			data, err := certsd.Hosts(server)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := toml.Unmarshal(data, &got); err != nil {
				t.Fatalf("%v in:\n%s", err, data)
			}
			want["capabilities"] = []any{"pull", "resolve"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHostsRefuses(t *testing.T) {
	for _, server := range []string{"", "mirror.test", "ftp://mirror.test", "http://", "http:///a", "http://user:secret@mirror.test",
		"http://mirror.test?x", "http://mirror.test#x", "http://mirror.test/\"\n", "http://mirror.test/%22", "http://a b", ":"} {
		data, err := certsd.Hosts(server)
		if err == nil {
			t.Errorf("%q gives:\n%s", server, data)
		}
	}
}

func TestPathIsWhereContainerdLooks(t *testing.T) {
	for host, want := range map[string]string{
		"docker.io":          "/etc/containerd/certs.d/docker.io/hosts.toml",
		"172.30.77.200:5000": "/etc/containerd/certs.d/172.30.77.200:5000/hosts.toml",
	} {
		if got := certsd.Path(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// FuzzHosts: a file that is given is TOML, and its server begins as the URL does.
func FuzzHosts(f *testing.F) {
	for _, server := range []string{"http://a", "https://a:1/b/c", "http://[::1]:5000", "http://a/%2e%2e", "http://a\x7f"} {
		f.Add(server)
	}
	f.Fuzz(func(t *testing.T, server string) {
		data, err := certsd.Hosts(server)
		if err != nil {
			return
		}
		var got struct {
			Server       string   `toml:"server"`
			Capabilities []string `toml:"capabilities"`
			OverridePath bool     `toml:"override_path"`
		}
		if err := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields().Decode(&got); err != nil {
			t.Fatalf("%q: %v in:\n%s", server, err, data)
		}
		scheme, _, _ := strings.Cut(server, "://")
		if !strings.HasPrefix(got.Server, scheme+"://") {
			t.Errorf("%q: server %q", server, got.Server)
		}
	})
}
