package component

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../../scripts/components"

func TestEveryProgramIsAToolOfItsModule(t *testing.T) {
	for _, module := range Modules() {
		data, err := os.ReadFile(filepath.Join(root, module.Name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, program := range module.Programs {
			if names[program.Name] {
				t.Errorf("%s: two programs are called %s", module.Name, program.Name)
			}
			names[program.Name] = true
			if _, ours := strings.CutPrefix(program.Package, "./"); ours {
				if _, err := os.Stat(filepath.Join(root, module.Name, program.Package, "main.go")); err != nil {
					t.Error(err)
				}
			} else if !slices.Contains(strings.Fields(string(data)), program.Package) {
				t.Errorf("%s/go.mod has no tool %s", module.Name, program.Package)
			}
		}
		if _, err := (Builder{Root: root}).flags(module); err != nil {
			t.Error(err)
		}
	}
}

func TestVersionsAreThoseOfReplacementsWhereThereAreAny(t *testing.T) {
	versions, err := Modules()[0].Versions(root)
	if err != nil {
		t.Fatal(err)
	}
	// Kubernetes' own number and its staging modules' move together.
	kubernetes, found := strings.CutPrefix(versions["k8s.io/kubernetes"], "v1.")
	if !found || versions["k8s.io/client-go"] != "v0."+kubernetes {
		t.Errorf("k8s.io/kubernetes is v1.%s and k8s.io/client-go %s", kubernetes, versions["k8s.io/client-go"])
	}
}

func TestBatchesHaveNoTwoBinariesOfOneName(t *testing.T) {
	dir := t.TempDir()
	programs := []Program{
		{Package: "a/controller", Name: "one"}, {Package: "b/controller", Name: "two"}, {Package: "c/server/v3", Name: "three"},
		{Package: "d/server", Name: "four"}, {Package: "e", Name: "five"}, {Package: "f", Name: "six", Alone: true}, {Package: "g", Name: "seven"},
	}
	if err := os.WriteFile(filepath.Join(dir, "five"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := batches(programs, dir)
	want := [][]Program{{programs[0], programs[2], programs[6]}, {programs[1], programs[3]}, {programs[5]}}
	if !slices.EqualFunc(got, want, slices.Equal[[]Program]) {
		t.Errorf("batches %v, want %v", got, want)
	}
	var many []Program
	for _, letter := range strings.Split("abcdefgh", "") {
		many = append(many, Program{Package: letter, Name: letter})
	}
	for _, batch := range batches(many, dir) {
		if len(batch) > batchSize {
			t.Errorf("a batch of %d", len(batch))
		}
	}
}

// module is a small module of components in a temporary root.
func module(t *testing.T) (Builder, Module) {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"small/go.mod":            "module example.com/small\n\ngo 1.24\n",
		"small/cmd/hello/main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
		"small/cmd/bye/main.go":   "package main\n\nfunc main() { println(\"bye\") }\n",
		"kaniko-stub/go.mod":      "module example.com/stub\n",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Builder{Root: root, Cache: t.TempDir(), Go: "go", GoVersion: "go1.x"},
		Module{Name: "small", Programs: []Program{{Package: "./cmd/hello", Name: "greeting"}, {Package: "./cmd/bye", Name: "bye"}}}
}

func TestASecondBuildCompilesNothingUntilAPinChanges(t *testing.T) {
	builder, small := module(t)
	first, err := builder.Build(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	if first.Cached {
		t.Error("the first build says that it was cached")
	}
	out, err := exec.CommandContext(t.Context(), first.Path("greeting")).CombinedOutput()
	if err != nil || string(out) != "hello\n" {
		t.Fatalf("the program says %q, %v", out, err)
	}

	builder.Go = "/nonexistent/go" // so that it could compile nothing
	second, err := builder.Build(t.Context(), small)
	if err != nil || !second.Cached || second.Dir != first.Dir {
		t.Errorf("the second build: %+v, %v; the first was %+v", second, err, first)
	}

	mod := filepath.Join(builder.Root, "small", "go.mod")
	if err := os.WriteFile(mod, []byte("module example.com/small\n\ngo 1.25\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Build(t.Context(), small); err == nil {
		t.Error("after a change of go.mod nothing was built")
	}
}

func TestABuildThatFailsLeavesNoBinary(t *testing.T) {
	builder, small := module(t)
	main := filepath.Join(builder.Root, "small/cmd/bye/main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() { undefined() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := builder.Build(t.Context(), small)
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Fatalf("error %v, want the compiler's", err)
	}
	left, err := filepath.Glob(filepath.Join(builder.Cache, "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAnInterruptedBuildSaysSoAndLeavesNothing(t *testing.T) {
	builder, small := module(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted")
	builder.Progress = func(string) { cancel(interrupt) } // in the middle of the build
	// Another cache, so that there is something to compile.
	t.Setenv("GOCACHE", t.TempDir())
	if _, err := builder.Build(ctx, small); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
	left, err := filepath.Glob(filepath.Join(builder.Cache, "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
