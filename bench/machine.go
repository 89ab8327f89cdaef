package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine says what was measured on.
type machine struct {
	CPU     string `json:"cpu"`
	CPUs    int    `json:"cpus"`
	Memory  string `json:"memory"`
	System  string `json:"system"`
	Go      string `json:"go"`
	Commit  string `json:"commit"`
	LoadAvg string `json:"load_average"` // before the first run: above 0.1 somebody else computes
	Date    string `json:"date"`
}

func describeMachine(ctx context.Context) machine {
	text := func(name string, args ...string) string {
		out, err := output(ctx, nil, name, args...)
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(string(out))
	}
	m := machine{
		CPU:     procField("/proc/cpuinfo", "model name"),
		CPUs:    runtime.NumCPU(),
		Memory:  procField("/proc/meminfo", "MemTotal"),
		System:  strings.Trim(procField("/etc/os-release", "PRETTY_NAME"), `"`),
		Go:      text("go", "env", "GOVERSION"),
		Commit:  text("git", "describe", "--always", "--dirty"),
		LoadAvg: "unknown",
		Date:    time.Now().UTC().Format(time.DateOnly),
	}
	// Clouds give the model a vague name; family and model tell the generation.
	m.CPU += fmt.Sprintf(" (family %s, model %s)", procField("/proc/cpuinfo", "cpu family"), procField("/proc/cpuinfo", "model"))
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.LoadAvg = strings.Join(strings.Fields(string(data))[:1], " ")
	}
	return m
}

// procField returns the first value of "name : value" or "name=value" lines.
func procField(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(data)) {
		i := strings.IndexAny(line, ":=")
		if i >= 0 && strings.TrimSpace(line[:i]) == name {
			return strings.TrimSpace(line[i+1:])
		}
	}
	return "unknown"
}

func (m machine) print(out io.Writer) {
	fmt.Fprintf(out, "%s: %d CPUs, %s, memory %s, %s, %s, commit %s, load before %s\n",
		m.Date, m.CPUs, m.CPU, m.Memory, m.System, m.Go, m.Commit, m.LoadAvg)
}
