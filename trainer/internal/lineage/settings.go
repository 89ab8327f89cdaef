package lineage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Settings lists a record's parameters and seeds in the order of their names.
func Settings(r *Record) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(r.Parameters)) {
		parts = append(parts, fmt.Sprintf("%s=%s", k, r.Parameters[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Seeds)) {
		parts = append(parts, fmt.Sprintf("%s=%d", k, r.Seeds[k]))
	}
	return strings.Join(parts, " ")
}
