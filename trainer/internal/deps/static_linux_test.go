package deps

import (
	"debug/elf"
	"path/filepath"
	"testing"
)

func TestBinaryIsStatic(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "trainer")
	goTool(t, []string{"CGO_ENABLED=0"}, "build", "-buildvcs=false", "-buildmode=default", "-o", binary, "./cmd/trainer")
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary asks for a dynamic loader")
		}
	}
	libs, err := f.ImportedLibraries()
	if err == nil && len(libs) > 0 {
		t.Errorf("the binary imports %v", libs)
	}
}
