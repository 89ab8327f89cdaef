package report

import (
	"time"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/quality"
)

// Data is what a report shows. Nil and empty parts are those that the run did
// not get to: the page says so.
type Data struct {
	RunID string
	Name  string // of the model
	Made  time.Time
	// Failure is the error that ended the run, "" for none. What is shown then may
	// be of an earlier attempt in the same directory.
	Failure string
	Eval    *evaluate.Report
	Gate    *gate.Report
	Quality *quality.Report
	Losses  []Loss
	Stages  []*lineage.Record
	Samples []Sample
	Lineage *lineage.Report
	// Absent says why a part is not there, by the name of its file.
	Absent []string
}

// Loss is one row of the loss history, in nats per token. NaN is no value.
type Loss struct {
	Step       int
	Train, Val float64
}

// Sample is one prompt answered by the model before and after training.
type Sample struct{ Prompt, Before, After string }
