package stage

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/quality"
	"github.com/trainyard/trainyard/trainer/internal/report"
)

// maxReport is how much of a report in JSON is read, in bytes.
const maxReport = 16 << 20

func readEvalReport(path string) (*evaluate.Report, error) {
	return readWith(path, evaluate.ReadReport)
}

func readGateReport(path string) (*gate.Report, error) { return readWith(path, gate.ReadReport) }

func readQualityReport(path string) (*quality.Report, error) {
	return readWith(path, fromJSON[quality.Report])
}

func readLosses(path string) ([]report.Loss, error) { return readWith(path, report.ReadLosses) }

func readSamples(path string) ([]report.Sample, error) {
	s, err := readWith(path, fromJSON[SampleReport])
	if err != nil {
		return nil, err
	}
	out := make([]report.Sample, len(s.Samples))
	for i, x := range s.Samples {
		out[i] = report.Sample{Prompt: x.Prompt, After: x.Tuned.Text}
		if x.Base != nil {
			out[i].Before = x.Base.Text
		}
	}
	return out, nil
}

// readWith reads a file and names it in what goes wrong.
func readWith[T any](path string, parse func(io.Reader) (T, error)) (T, error) {
	var none T
	f, err := os.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	v, err := parse(f)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// fromJSON parses a report that has no reader of its own.
func fromJSON[T any](r io.Reader) (*T, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxReport {
		return nil, fmt.Errorf("more than %d bytes", maxReport)
	}
	v := new(T)
	return v, json.Unmarshal(b, v)
}
