package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

// restrict rewrites an OCI specification (or its process alone) in place, so
// that no set of capabilities holds one outside held. Everything else stays as
// it is, unknown fields included; a file with nothing to take out stays whole.
func restrict(file string, held capability.Set) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	restricted, err := restrictSpec(data, held)
	if err != nil {
		return fmt.Errorf("%s is no OCI specification: %w", file, err)
	}
	if restricted == nil {
		return nil
	}
	return os.WriteFile(file, restricted, 0o600)
}

// restrictSpec returns nil where there is nothing to take out.
func restrictSpec(data []byte, held capability.Set) ([]byte, error) {
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, err
	}
	process, isConfig := spec["process"] // a config.json
	if !isConfig {
		return restrictProcess(data, held)
	}
	restricted, err := restrictProcess(process, held)
	if restricted == nil || err != nil {
		return nil, err
	}
	spec["process"] = restricted
	return json.Marshal(spec)
}

func restrictProcess(data []byte, held capability.Set) ([]byte, error) {
	var process map[string]json.RawMessage
	if err := json.Unmarshal(data, &process); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	raw, found := process["capabilities"]
	if !found {
		return nil, nil
	}
	var sets map[string][]string
	if err := json.Unmarshal(raw, &sets); err != nil {
		return nil, fmt.Errorf("process.capabilities: %w", err)
	}
	taken := false
	for name, set := range sets {
		kept := slices.DeleteFunc(set, func(capability string) bool { return !held.Has(capability) })
		taken = taken || len(kept) < len(set)
		sets[name] = kept
	}
	if !taken {
		return nil, nil
	}
	raw, err := json.Marshal(sets)
	if err != nil {
		return nil, err
	}
	process["capabilities"] = raw
	return json.Marshal(process)
}
