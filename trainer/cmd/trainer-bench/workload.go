package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// workload is one entry of bench/workloads.json, shared with the other contenders.
type workload struct {
	Name     string `json:"name"`
	Layers   int    `json:"layers"`
	Heads    int    `json:"heads"`
	Channels int    `json:"channels"`
	Vocab    int    `json:"vocab"`
	Block    int    `json:"block"`
	Batch    int    `json:"batch"`
	Tokens   int    `json:"tokens"`
	Warmup   int    `json:"warmup"` // steps before the clock counts
	Steps    int    `json:"steps"`
}

// readWorkload returns the workload that spec, "FILE:NAME", names.
func readWorkload(spec string) (workload, error) {
	i := strings.LastIndexByte(spec, ':')
	if i < 0 {
		return workload{}, fmt.Errorf("workload %q: want FILE:NAME", spec)
	}
	path, name := spec[:i], spec[i+1:]
	data, err := os.ReadFile(path)
	if err != nil {
		return workload{}, err
	}
	var all []workload
	if err := json.Unmarshal(data, &all); err != nil {
		return workload{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, w := range all {
		if w.Name == name {
			if w.Steps < 1 || w.Warmup < 0 || w.Batch < 1 || w.Tokens < 1 {
				return workload{}, fmt.Errorf("%s: workload %s: steps, batch and tokens must be at least 1", path, name)
			}
			return w, nil
		}
	}
	return workload{}, fmt.Errorf("%s has no workload %q", path, name)
}

// config returns the model's configuration: GPT-2's, without dropout.
func (w workload) config() gpt.Config {
	return gpt.Config{
		VocabSize: w.Vocab, BlockSize: w.Block,
		Layers: w.Layers, Heads: w.Heads, Channels: w.Channels, Inner: 4 * w.Channels,
		Activation: gpt.GELUTanh, Epsilon: 1e-5,
	}
}
