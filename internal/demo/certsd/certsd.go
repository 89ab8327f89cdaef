// Package certsd writes the hosts.toml files that tell containerd how to reach
// registries: in plain http, or by a mirror. It copies them nowhere.
package certsd

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Folder is where containerd on a kind node looks, given config_path.
const Folder = "/etc/containerd/certs.d"

// Path returns the file for images whose names begin with host.
func Path(host string) string { return path.Join(Folder, host, "hosts.toml") }

// A host, and a path that can begin the names of repositories.
var serverURL = regexp.MustCompile(`^(https?://[A-Za-z0-9.:\[\]-]+)(/[a-z0-9._/-]*)?$`)

// Hosts returns the file's contents: containerd asks the server at this URL, and
// no other, for images. A path of the URL goes before the repositories' names.
func Hosts(server string) ([]byte, error) {
	parts := serverURL.FindStringSubmatch(server)
	if parts == nil {
		return nil, fmt.Errorf("URL of a registry %q: want http://HOST[:PORT][/PREFIX] or https://…", server)
	}
	url, override := parts[1], ""
	if prefix := strings.Trim(parts[2], "/"); prefix != "" {
		url += "/v2/" + prefix
		override = "override_path = true\n"
	}
	// The server is the last that containerd asks, and without a table of hosts the
	// first: in its place the public registry would be asked for what it does not
	// have, which a host without network waits for.
	return fmt.Appendf(nil, "server = %q\ncapabilities = [\"pull\", \"resolve\"]\n%s", url, override), nil
}
