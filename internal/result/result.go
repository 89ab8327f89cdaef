package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Budget is what the results of one step may take, in bytes of the message that
// Tekton hands to Kubernetes.
const Budget = 1024

// Write writes every value to a file of its name in dir, where Tekton looks for
// results.
func Write(dir string, values map[string]string) error {
	if err := Check(values); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path := filepath.Join(dir, name)
		// Whatever is there, a link of an earlier step too, is none of ours.
		if err := os.RemoveAll(path); err != nil {
			return exitcode.Errorf(exitcode.IO, "result %s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(values[name]), 0o644); err != nil {
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
