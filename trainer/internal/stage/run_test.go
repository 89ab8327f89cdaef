package stage

import (
	"os"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// A run that fails where an earlier one passed must not show that one's verdict
// as its own.
func TestRunThatFailsAfterOneThatPassed(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	mustRun(t, o)
	if err := os.WriteFile(o.Prepare.Inputs[0], nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), o); code(err) != exitcode.BadInput {
		t.Errorf("error %v", err)
	}
	if page := string(readFile(t, o, ReportFile)); strings.Contains(page, "Gate: pass") || !strings.Contains(page, "Run failed") {
		t.Error("the page shows an earlier verdict as that of this run")
	}
}

// What a later stage would refuse is refused before the first one works.
func TestRunRefusesBeforeItWorks(t *testing.T) {
	for name, change := range map[string]func(o *RunOptions){
		"no input":           func(o *RunOptions) { o.Prepare.Inputs = nil },
		"learning rate":      func(o *RunOptions) { o.Train.Config.LearningRate = 1e30 },
		"resume":             func(o *RunOptions) { o.Train.Resume = "maybe" },
		"checkpoint":         func(o *RunOptions) { o.Checkpoint = "../x" },
		"name":               func(o *RunOptions) { o.Name = "../x" },
		"policy":             func(o *RunOptions) { o.Policy.WithinNoise = "maybe" },
		"separator":          func(o *RunOptions) { o.Prepare.Separator = "comma" },
		"tokens of a sample": func(o *RunOptions) { o.Sample.Sampling.MaxTokens = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := life(t, corpusFile(t), fileStore(t))
			change(&o)
			if rep, err := Run(t.Context(), o); err == nil || rep != nil {
				t.Errorf("report %+v, error %v", rep, err)
			}
			if _, err := os.Stat(o.RunDir); !os.IsNotExist(err) {
				t.Errorf("the run directory was made: %v", err)
			}
		})
	}
}
