package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

// restrict rewrites an OCI specification (or its process alone) in place, so
// that no set of capabilities holds one outside held. Everything else stays as
// it is, unknown fields included.
func restrict(file string, held capability.Set) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("%s is no OCI specification: %w", file, err)
	}
	if process, ok := spec["process"]; ok { // a config.json
		restricted, err := restrictProcess(process, held)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		spec["process"] = restricted
		data, err = json.Marshal(spec)
		if err != nil {
			return err
		}
	} else if data, err = restrictProcess(data, held); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, data, 0o600)
}

func restrictProcess(data json.RawMessage, held capability.Set) (json.RawMessage, error) {
	var process map[string]json.RawMessage
	if err := json.Unmarshal(data, &process); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	raw, ok := process["capabilities"]
	if !ok {
		return data, nil
	}
	var sets map[string][]string
	if err := json.Unmarshal(raw, &sets); err != nil {
		return nil, fmt.Errorf("process.capabilities: %w", err)
	}
	for name, set := range sets {
		kept := make([]string, 0, len(set))
		for _, capability := range set {
			if held.Has(capability) {
				kept = append(kept, capability)
			}
		}
		sets[name] = kept
	}
	raw, err := json.Marshal(sets)
	if err != nil {
		return nil, err
	}
	process["capabilities"] = raw
	return json.Marshal(process)
}
