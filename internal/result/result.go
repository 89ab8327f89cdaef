package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Budget is what the results of one step may take, in bytes of the message that
// Tekton hands to Kubernetes.
const Budget = 1024

// Files maps the names of results to their files.
type Files map[string]string

// ParseFiles reads pairs such as IMAGE_URL=/tekton/results/IMAGE_URL.
func ParseFiles(pairs []string) (Files, error) {
	f := Files{}
	for _, p := range pairs {
		name, path, ok := strings.Cut(p, "=")
		if !ok || name == "" || path == "" {
			return nil, exitcode.Errorf(exitcode.Usage, "result %q: want NAME=FILE", p)
		}
		if _, twice := f[name]; twice {
			return nil, exitcode.Errorf(exitcode.Usage, "result %s is given two files", name)
		}
		f[name] = path
	}
	return f, nil
}

// Write writes every value to its file. The names of both must be the same, so that
// no declared result stays without a value and no value is lost.
func (f Files) Write(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if _, ok := values[name]; !ok {
			return exitcode.Errorf(exitcode.Usage, "result %s is not one of %v", name, slices.Sorted(maps.Keys(values)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if f[name] == "" {
			return exitcode.Errorf(exitcode.Usage, "result %s has no file: give it one", name)
		}
	}
	if err := Check(values); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		// Whatever is there, a link of an earlier step too, is none of ours.
		if err := os.RemoveAll(f[name]); err != nil {
			return exitcode.Errorf(exitcode.IO, "result %s: %w", name, err)
		}
		if err := os.WriteFile(f[name], []byte(values[name]), 0o644); err != nil {
			return exitcode.Errorf(exitcode.IO, "result %s: %w", name, err)
		}
	}
	return nil
}

// Check tells whether the values can be results: within the budget, and of one line,
// since Tekton would paste a newline into the next task's arguments.
func Check(values map[string]string) error {
	largest, total := "", len("[]")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.ContainsAny(values[name], "\r\n") {
			return exitcode.Errorf(exitcode.Failed, "result %s has a line break", name)
		}
		// One element of the message, with its comma.
		line, err := json.Marshal(struct {
			Key   string `json:"key"`
			Value string `json:"value"`
			Type  int    `json:"type"`
		}{name, values[name], 1})
		if err != nil {
			return fmt.Errorf("result %s: %w", name, err)
		}
		total += len(line) + 1
		if largest == "" || len(values[name]) > len(values[largest]) {
			largest = name
		}
	}
	if total > Budget {
		return exitcode.Errorf(exitcode.BadInput, "the results take %d bytes of %d: the largest is %s with %d bytes: use a shorter image name",
			total, Budget, largest, len(values[largest]))
	}
	return nil
}
