package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const workloadsFile = "bench/workloads.json"

// workload is a model's shape and a batch. The contenders read the same file.
type workload struct {
	Name     string `json:"name"`
	About    string `json:"about"`
	Layers   int    `json:"layers"`
	Channels int    `json:"channels"`
	Vocab    int    `json:"vocab"`
	Batch    int    `json:"batch"`
	Tokens   int    `json:"tokens"`
	Warmup   int    `json:"warmup"`
	Steps    int    `json:"steps"`
}

func readWorkloads(path string) ([]workload, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []workload
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// spec returns what the contenders' -workload takes.
func (w workload) spec() string { return workloadsFile + ":" + w.Name }

// tokensPerStep returns B*T.
func (w workload) tokensPerStep() int { return w.Batch * w.Tokens }

// gflop returns the multiplications and additions of one step's matrix
// products, in 1e9: two for each weight and token forward, four backward, and
// the causal half of the attention. What is not a matrix product is not
// counted, so that the quotient with the time understates.
func (w workload) gflop() float64 {
	c, n := float64(w.Channels), float64(w.tokensPerStep())
	weights := float64(w.Layers)*12*c*c + float64(w.Vocab)*c
	attention := float64(w.Layers) * 2 * float64(w.Tokens) * c // per token, forward: 2 products of T*C/2, 2 FLOP each
	return 3 * n * (2*weights + attention) / 1e9
}
