package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goTree writes a Go tree of a few packages.
func goTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"b/b.go":             "// Package b is last.\npackage b\n\n// F does something.\n//\n//\n// More of it.\nfunc F(x int) error { return nil }\n\nfunc undocumented() {}\n",
		"a/z.go":             "package a\n\n// T is a type.\ntype T struct {\n\t// N counts.\n\tN int\n\tm int // says m\n}\n\n// String is a method.\nfunc (t *T) String() string { return \"\" }\n",
		"a/a.go":             "package a\n\nimport \"fmt\"\n\n// Names.\nconst (\n\tA = 1 // first\n\tB = 2\n)\n\nvar _ = fmt.Sprint\n",
		"a/a_test.go":        "// Package a is tested.\npackage a\n",
		"a/testdata/x.go":    "// Package x is data.\npackage x\n",
		"cmd/go/main.go":     "// Go is a command.\npackage main\n",
		"vendor/v/v.go":      "// Package v is vendored.\npackage v\n",
		"a-b/other.go":       "// Package other comes after a.\npackage other\n",
		"a/windows_only.go":  "//go:build windows\n\npackage a\n\n// W is read on every machine.\nvar W int\n",
		"a/not_go.txt":       "nothing",
		"internal/x/exec.go": "// Package x is internal.\npackage x\n",
	} {
		path := filepath.Join(root, "src", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var want = []string{
	"const A\nconst B\n\nNames.\nA: first",
	"var W\n\nW is read on every machine.",
	"type T struct\n\nT is a type.\nN: N counts.\nm: says m",
	"func (t *T) String() string\n\nString is a method.",
	"package other // import \"a-b\"\n\nPackage other comes after a.",
	"package b // import \"b\"\n\nPackage b is last.",
	"func F(x int) error\n\nF does something.\n\nMore of it.",
	"package x // import \"internal/x\"\n\nPackage x is internal.",
}

func TestDocumentsInOrder(t *testing.T) {
	var b bytes.Buffer
	if err := write(&b, goTree(t), 0); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(b.String(), "\n"); got != strings.Join(want, "\n\n\n") {
		t.Errorf("documents:\n%s\nwant:\n%s", got, strings.Join(want, "\n\n\n"))
	}
}

func TestBytesCutsByWholeDocuments(t *testing.T) {
	root := goTree(t)
	two := len(want[0]) + len("\n\n\n") + len(want[1]) + len("\n")
	for limit, docs := range map[int]int{two - 1: 1, two: 2, two + 1: 2, 1 << 20: len(want)} {
		var b bytes.Buffer
		if err := write(&b, root, int64(limit)); err != nil {
			t.Fatal(err)
		}
		if b.Len() > limit || b.String() != strings.Join(want[:docs], "\n\n\n")+"\n" {
			t.Errorf("%d bytes allowed: %d written, want %d documents", limit, b.Len(), docs)
		}
	}
}

func TestOutputFolderIsMade(t *testing.T) {
	out := filepath.Join(t.TempDir(), "runs", "corpus", "out.txt")
	if err := run(goTree(t), out, 0); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != strings.Join(want, "\n\n\n")+"\n" {
		t.Errorf("%v: %q", err, b)
	}
}

func TestNoTree(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.txt")
	if err := run(t.TempDir(), out, 0); err == nil {
		t.Error("an empty directory is a Go tree")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a failed run leaves a file")
	}
}
