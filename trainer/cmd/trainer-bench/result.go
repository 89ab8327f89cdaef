package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// result is what every contender prints: one JSON object.
type result struct {
	Contender    string    `json:"contender"`
	Version      string    `json:"version"`
	Workload     string    `json:"workload"`
	Threads      int       `json:"threads"`
	Params       int64     `json:"params"`
	StepMS       []float64 `json:"step_ms"`
	MedianMS     float64   `json:"median_ms"`
	PeakRSSBytes int64     `json:"peak_rss_bytes"`
	PeakGFLOPS   float64   `json:"peak_gflops"` // of the multiply-add units, measured beside the steps
	FirstLoss    float64   `json:"first_loss"`
	LastLoss     float64   `json:"last_loss"`
}

func (r result) write(out io.Writer) error {
	return json.NewEncoder(out).Encode(r)
}

// peakRSS returns the most memory that this process ever had resident, from
// Linux's /proc. Unlike getrusage it does not count the parent's before exec.
func peakRSS() (int64, error) {
	const path = "/proc/self/status"
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		rest, found := strings.CutPrefix(line, "VmHWM:")
		if !found {
			continue
		}
		var kib int64
		if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
			return 0, fmt.Errorf("%s: VmHWM: %w", path, err)
		}
		return kib * 1024, nil
	}
	return 0, fmt.Errorf("%s has no VmHWM", path)
}
