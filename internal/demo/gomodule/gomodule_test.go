package gomodule_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/demo/gomodule"
)

// folder holds a go.mod that pins what the tests ask for.
var folder = filepath.Join("..", "..", "..", "scripts", "components", "cluster")

func TestFindNamesTheVersionThatGoModPins(t *testing.T) {
	found, err := gomodule.Find(t.Context(), "go", folder, "sigs.k8s.io/kind")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\t" + found.Path + " " + found.Version; !strings.Contains(string(pins), want) {
		t.Errorf("go.mod has no line %q", want)
	}
	data, err := fs.ReadFile(found.FS(), "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), "module sigs.k8s.io/kind\n") {
		t.Errorf("the folder holds another module: %.40q", data)
	}
	if got, want := found.String(), "sigs.k8s.io/kind@"+found.Version; got != want {
		t.Errorf("printed as %q, want %q", got, want)
	}
}

func TestFindTakesTheVersionOfAReplacement(t *testing.T) {
	found, err := gomodule.Find(t.Context(), "go", folder, "k8s.io/api")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/api => k8s.io/api " + found.Version; !strings.Contains(string(pins), want) {
		t.Errorf("go.mod has no %q", want)
	}
}

func TestFindFails(t *testing.T) {
	tests := map[string]struct{ command, folder, path, want string }{
		"a module that is not required": {"go", folder, "example.com/none", "not a known dependency"},
		"a folder that is not there":    {"go", "no-such-folder", "sigs.k8s.io/kind", "no-such-folder"},
		"a folder without a go.mod":     {"go", os.TempDir(), "sigs.k8s.io/kind", "sigs.k8s.io/kind"},
		"no go command":                 {"no-such-go", folder, "sigs.k8s.io/kind", "no-such-go"},
		"a command that says nothing":   {"true", folder, "sigs.k8s.io/kind", "sigs.k8s.io/kind"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := gomodule.Find(t.Context(), test.command, test.folder, test.path)
			if err == nil {
				t.Fatalf("found %+v", found)
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, test.want)
			}
		})
	}
}
