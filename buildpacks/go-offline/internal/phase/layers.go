package phase

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"

	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/settings"
)

// layers is the directory that the lifecycle gives to the buildpack.
type layers struct{ root string }

func (l layers) dir(name string) string { return filepath.Join(l.root, name) }

// Files of the Buildpack API, https://buildpacks.io/docs/reference/spec/buildpack-api/.
type (
	layerTOML struct {
		Types layerTypes `toml:"types"`
	}
	layerTypes struct {
		Launch bool `toml:"launch"`
		Build  bool `toml:"build"`
		Cache  bool `toml:"cache"`
	}
	launchTOML struct {
		Labels    []label   `toml:"labels,omitempty"`
		Processes []process `toml:"processes"`
	}
	label struct {
		Key   string `toml:"key"`
		Value string `toml:"value"`
	}
	// process is started without a shell, as all are since API 0.9.
	process struct {
		Type    string   `toml:"type"`
		Command []string `toml:"command"`
		Default bool     `toml:"default"`
	}
)

// write says what the layers are and how the programs are started. The first
// program is what the image runs when nothing else is asked for.
func (l layers) write(programs []string, labels []settings.Label, bom []byte) error {
	launch := launchTOML{}
	for i, p := range programs {
		launch.Processes = append(launch.Processes, process{filepath.Base(p), []string{p}, i == 0})
	}
	for _, x := range labels {
		launch.Labels = append(launch.Labels, label{x.Key, x.Value})
	}
	for name, content := range map[string]any{
		targetsLayer + ".toml": layerTOML{layerTypes{Launch: true}},
		cacheLayer + ".toml":   layerTOML{layerTypes{Cache: true}},
		modulesLayer + ".toml": layerTOML{layerTypes{Cache: true}},
		"launch.toml":          launch,
	} {
		var out bytes.Buffer
		if err := toml.NewEncoder(&out).Encode(content); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(l.dir(name), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	// The layer's bill of materials is restored with the layer, the other is the
	// whole image's; both are what the programs say.
	for _, name := range []string{targetsLayer + ".sbom.cdx.json", "launch.sbom.cdx.json"} {
		if err := os.WriteFile(l.dir(name), bom, 0o644); err != nil {
			return err
		}
	}
	return nil
}
