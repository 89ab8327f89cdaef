package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShapesFileIsReadable(t *testing.T) {
	shapes, err := readShapes("../../../bench/shapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	forms := make(map[string]bool)
	for _, s := range shapes {
		if seen[s.name] {
			t.Errorf("%s is there twice", s.name)
		}
		seen[s.name], forms[s.form] = true, true
	}
	if len(shapes) < 30 || len(forms) != 3 {
		t.Errorf("%d shapes in %d forms", len(shapes), len(forms))
	}
}

func TestBadShapesAreNamed(t *testing.T) {
	for name, line := range map[string]string{
		"missing size": "a NN 1 2", "unknown form": "a TT 1 2 3", "zero": "a NN 0 2 3", "no number": "a NN x 2 3",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shapes.txt")
			if err := os.WriteFile(path, []byte("# a comment\n\n"+line+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := readShapes(path); err == nil || !strings.Contains(err.Error(), "shapes.txt:3") {
				t.Errorf("error %v, want one that names line 3", err)
			}
		})
	}
}

func TestSGEMMPrintsALineForEachShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shapes.txt")
	if err := os.WriteFile(path, []byte("a NN 8 9 10\nb NT 8 9 10\nc TN 8 9 10\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"sgemm", "-shapes", path, "-threads", "1"}, &out); err != nil {
		t.Fatal(err)
	}
	var names string
	for dec := json.NewDecoder(&out); dec.More(); {
		var r sgemmResult
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.GFLOPSMedian <= 0 || r.GFLOPSBest < r.GFLOPSMedian || r.K != 10 {
			t.Errorf("result %+v", r)
		}
		names += r.Shape
	}
	if names != "abc" {
		t.Errorf("shapes %q, want abc", names)
	}
}

func TestBadArgumentsAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"none":     {nil, "use step or sgemm"},
		"unknown":  {[]string{"fly"}, `"fly"`},
		"surplus":  {[]string{"sgemm", "x"}, `"x"`},
		"no file":  {[]string{"sgemm", "-shapes", "missing.txt"}, "missing.txt"},
		"no place": {[]string{"step"}, "want FILE:NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(test.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}
