package gate

import "github.com/trainyard/trainyard/trainer/internal/evaluate"

// Evidence is what a verdict is drawn from. Each part comes with the error of
// getting it: an error blocks like bad evidence does.
type Evidence struct {
	Candidate Digest // of the candidate's files as they are now
	Eval      *evaluate.Report
	EvalErr   error
	Val, Test Digest // of the held-out files as they are now

	Quality    *Quality
	QualityErr error

	Training    *Training
	TrainingErr error

	// Promoted is the model that the alias points to now. An error that wraps
	// store.ErrNotFound means that there is none; any other, that nobody knows.
	Promoted Digest

	Image string // code image reference, "" where there is none
	// Files holds nil for each required file that is there, and for others why
	// not. A file that nobody looked for counts as missing.
	Files map[string]error
}

// Digest is a SHA-256 in hex, or why there is none.
type Digest struct {
	SHA256 string
	Err    error
}

// Quality is the verdict of the data quality report.
type Quality struct {
	Passed    bool
	Documents int
	Failing   []string // names of the detectors over their threshold
}

// Training is how far training came.
type Training struct {
	Step, Total int
	StopReason  string // of an early stop
}
