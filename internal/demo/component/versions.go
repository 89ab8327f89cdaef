package component

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// Versions returns the version that the module's go.mod under root pins for
// each module it requires: replacements win, as they do in a build.
func (m Module) Versions(root string) (map[string]string, error) {
	path := filepath.Join(root, m.Name, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the pins of the cluster's components: %w", err)
	}
	file, err := modfile.Parse(path, data, nil)
	if err != nil {
		return nil, err
	}
	versions := make(map[string]string, len(file.Require))
	for _, require := range file.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	for _, replace := range file.Replace {
		if _, required := versions[replace.Old.Path]; required && replace.New.Version != "" {
			versions[replace.Old.Path] = replace.New.Version
		}
	}
	return versions, nil
}
