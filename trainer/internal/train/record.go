package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Names of the directories and files of a checkpoint.
const (
	LastDir    = "last"               // resumable: model, optimizer and streams
	BestDir    = "best"               // the model of the best evaluation
	RecordName = "trainer_state.json" // in LastDir
)

const recordVersion = 1

// Record is trainer_state.json: where a run stands, and what it is.
type Record struct {
	SchemaVersion int `json:"schema_version"`

	Step       int    `json:"step"`
	TotalSteps int    `json:"total_steps"`
	Finished   bool   `json:"finished"` // reached its last step, or a policy ended it
	StopReason string `json:"stop_reason,omitempty"`

	Loss         float64 `json:"loss"`
	LearningRate float64 `json:"learning_rate"`
	GradNorm     float64 `json:"grad_norm"`
	StepTokens   int     `json:"step_tokens"`
	BestStep     int     `json:"best_step"`
	BestLoss     float64 `json:"best_loss"`
	Evals        []Eval  `json:"evals"`
	Tokens       int64   `json:"tokens"`
	Seconds      float64 `json:"seconds"`

	// DataStream is the state of the stream that draws batches. Dropout and
	// evaluation need none: their draws are functions of seed and step.
	DataStream []byte `json:"data_stream"`

	Identity []Fact            `json:"identity"` // what decides the weights
	Host     []Fact            `json:"host"`     // what does not: machine, threads, versions
	Files    map[string]string `json:"files"`    // sha256:<hex> of every other file of the directory
}

func recordOf(s *State) Record {
	return Record{
		SchemaVersion: recordVersion,
		Step:          s.Step, TotalSteps: s.Total,
		Finished: s.Step >= s.Total || (s.StopReason != "" && !s.Paused), StopReason: s.StopReason,
		Loss: s.Loss, LearningRate: s.LearningRate, GradNorm: s.GradNorm, StepTokens: s.StepTokens,
		BestStep: s.BestStep, BestLoss: s.BestLoss, Evals: s.Evals,
		Tokens: s.Tokens, Seconds: s.Elapsed.Seconds(),
	}
}

// State returns where the run stands.
func (r Record) State() State {
	s := State{
		Step: r.Step, Total: r.TotalSteps,
		Loss: r.Loss, LearningRate: r.LearningRate, GradNorm: r.GradNorm, StepTokens: r.StepTokens,
		BestStep: r.BestStep, BestLoss: r.BestLoss, Evals: r.Evals,
		Tokens: r.Tokens, Elapsed: time.Duration(r.Seconds * float64(time.Second)),
	}
	if r.Finished {
		s.StopReason = r.StopReason
	}
	return s
}

// maxRecord bounds what a damaged file may make us read; a record has some 50
// bytes for each evaluation.
const maxRecord = 64 << 20

// ReadRecord reads the record of a checkpoint directory. When there is no such
// directory the error wraps fs.ErrNotExist.
func ReadRecord(dir string) (Record, error) {
	path := filepath.Join(dir, RecordName)
	var r Record
	info, err := os.Stat(path)
	if err != nil {
		if _, dirErr := os.Stat(dir); dirErr == nil && errors.Is(err, fs.ErrNotExist) {
			return r, fmt.Errorf("%w: %s is missing: remove %s to start anew", ErrCheckpoint, path, dir)
		}
		return r, fmt.Errorf("read checkpoint: %w", err)
	}
	if info.Size() > maxRecord {
		return r, fmt.Errorf("%w: %s has %d bytes, more than %d", ErrCheckpoint, path, info.Size(), maxRecord)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read checkpoint: %w", err)
	}
	r, err = parseRecord(b)
	if err != nil {
		return r, fmt.Errorf("%w: %s: %w", ErrCheckpoint, path, err)
	}
	return r, nil
}

func parseRecord(b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return r, err
	}
	switch {
	case r.SchemaVersion != recordVersion:
		return r, fmt.Errorf("schema_version is %d, this trainer reads %d", r.SchemaVersion, recordVersion)
	case r.Step < 0 || r.TotalSteps < 1 || r.Step > r.TotalSteps:
		return r, fmt.Errorf("step is %d of %d", r.Step, r.TotalSteps)
	case r.BestStep < 0 || r.BestStep > r.Step:
		return r, fmt.Errorf("best_step is %d at step %d", r.BestStep, r.Step)
	case r.Tokens < 0 || r.StepTokens < 0 || r.Seconds < 0 || r.Seconds > 1e9:
		return r, fmt.Errorf("tokens %d, step_tokens %d or seconds %v cannot be", r.Tokens, r.StepTokens, r.Seconds)
	}
	return r, nil
}

// Fact returns a named fact of the identity or the host.
func (r Record) Fact(name string) (value string, ok bool) {
	for _, f := range append(r.Identity[:len(r.Identity):len(r.Identity)], r.Host...) {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}
