package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

// without is what a host without CAP_SYS_RESOURCE (bit 24) holds.
const without = capability.Set(0x1ffffffffff &^ (1 << 24))

func TestRestrict(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"a config.json": {
			`{"ociVersion": "1.2.0", "process": {"cwd": "/", "env": ["A=<&>"], "rlimits": [{"hard": 18446744073709551615}],
			  "capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_KILL"], "effective": ["CAP_SYS_RESOURCE"], "permitted": ["CAP_KILL"], "ambient": null}},
			  "linux": {"future": {"n": 1.50}}, "x-unknown": [1, "two", null]}`,
			`{"ociVersion": "1.2.0", "process": {"cwd": "/", "env": ["A=<&>"], "rlimits": [{"hard": 18446744073709551615}],
			  "capabilities": {"bounding": ["CAP_CHOWN", "CAP_KILL"], "effective": [], "permitted": ["CAP_KILL"], "ambient": null}},
			  "linux": {"future": {"n": 1.50}}, "x-unknown": [1, "two", null]}`,
		},
		"a process.json": {
			`{"terminal": true, "args": ["sh"], "capabilities": {"bounding": ["CAP_SYS_RESOURCE"]}, "x-unknown": {}}`,
			`{"terminal": true, "args": ["sh"], "capabilities": {"bounding": []}, "x-unknown": {}}`,
		},
		"a capability that this program does not know": {
			`{"capabilities": {"bounding": ["CAP_OF_TOMORROW", "CAP_KILL"], "of-tomorrow": ["CAP_SYS_RESOURCE"]}}`,
			`{"capabilities": {"bounding": ["CAP_KILL"], "of-tomorrow": []}}`,
		},
		"nothing to take out": {
			`{"process": {"capabilities": {"bounding": ["CAP_CHOWN"]}}}`, `{"process": {"capabilities": {"bounding": ["CAP_CHOWN"]}}}`,
		},
		"no capabilities":    {`{"process": {"cwd": "/"}}`, `{"process": {"cwd": "/"}}`},
		"of nothing":         {`{"process": {"capabilities": null}}`, `{"process": {"capabilities": null}}`},
		"a process of none":  {`{"process": null}`, `{"process": null}`},
		"an empty object":    {`{}`, `{}`},
		"an empty process":   {`null`, `null`},
		"a pod without that": {`{"process": {"capabilities": {}}}`, `{"process": {"capabilities": {}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := write(t, test.spec)
			if err := restrict(file, without); err != nil {
				t.Fatal(err)
			}
			got := read(t, file)
			if diff := cmp.Diff(decode(t, test.want), decode(t, got)); diff != "" {
				t.Error(diff)
			}
			if test.spec == test.want && got != test.spec {
				t.Errorf("with nothing to take out the file is written anew: %s", got)
			}
			info, err := os.Stat(file)
			if err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("its mode is %v now (%v)", info.Mode(), err)
			}
		})
	}
}

func TestRestrictRefusesAndLeavesTheFileAlone(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing":                  "",
		"no JSON":                  "spec",
		"a list":                   "[]",
		"half a file":              `{"process": {"capabilities": {"bounding": ["CAP_SYS_RESOURCE"]`,
		"two documents":            `{} {}`,
		"a process that is a word": `{"process": "sh"}`,
		"capabilities in a list":   `{"process": {"capabilities": ["CAP_SYS_RESOURCE"]}}`,
		"capabilities by number":   `{"process": {"capabilities": {"bounding": [24]}}}`,
		"the same of a process":    `{"capabilities": {"bounding": "CAP_SYS_RESOURCE"}}`,
		"a process that is a list": `{"process": [], "capabilities": {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, spec)
			err := restrict(file, without)
			if err == nil || !strings.HasPrefix(err.Error(), file+" is no OCI specification: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with the file", err)
			}
			if got := read(t, file); got != spec {
				t.Errorf("the file holds %q now", got)
			}
		})
	}
	if err := restrict(filepath.Join(t.TempDir(), "config.json"), without); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// decode keeps numbers as they are written.
func decode(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// FuzzRestrictSpec: no capability that is not held is left, a second time there
// is nothing to do, and nothing else changes.
func FuzzRestrictSpec(f *testing.F) {
	for _, spec := range []string{
		`{"process": {"capabilities": {"bounding": ["CAP_SYS_RESOURCE", "CAP_KILL"]}, "n": 1e400}}`,
		`{"capabilities": {"a": ["CAP_SYS_RESOURCE"], "b": null}, "x": "\u0000<"}`, `{"process": null}`, `null`, `{"process": 1}`, ``,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		got, err := restrictSpec(spec, without)
		if err != nil || got == nil {
			return
		}
		sets, rest := split(t, got)
		for name, set := range sets {
			for _, capability := range set {
				if !without.Has(capability) {
					t.Errorf("%s: %s holds %s", spec, name, capability)
				}
			}
		}
		if again, err := restrictSpec(got, without); err != nil || again != nil {
			t.Errorf("%s gives %s, and again %s, %v", spec, got, again, err)
		}
		if _, want := split(t, spec); !cmp.Equal(want, rest) {
			t.Errorf("%s: something else changed: %s", spec, cmp.Diff(want, rest))
		}
	})
}

// split returns the sets of capabilities of a specification, and the rest of it.
func split(t *testing.T, spec []byte) (sets map[string][]string, rest any) {
	t.Helper()
	rest = decode(t, string(spec))
	process, _ := rest.(map[string]any)
	if inner, isConfig := process["process"]; isConfig {
		process, _ = inner.(map[string]any)
	}
	data, err := json.Marshal(process["capabilities"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &sets); err != nil {
		t.Fatal(err)
	}
	if process != nil {
		process["capabilities"] = nil
	}
	return sets, rest
}
