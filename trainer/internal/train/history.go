package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// HistoryName is the file of the loss history in a run directory.
const HistoryName = "loss_history.csv"

// historyHeader: losses in nats per target, tokens and seconds since the run
// began. train_loss is that of the step's own batches; an empty field means
// that there was none at this step.
const historyHeader = "step,train_loss,val_loss,learning_rate,grad_norm,tokens,seconds\n"

// History appends to the loss history, one row a step at most.
type History struct{ f *os.File }

// OpenHistory opens the history of a run that goes on after step; rows behind
// it, and a row that a crash cut short, are dropped. Step 0 begins a new one.
func OpenHistory(path string, step int) (*History, error) {
	kept := []byte(historyHeader)
	if step > 0 {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read loss history: %w", err)
		}
		if err == nil {
			if kept, err = historyUpTo(old, step); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrCheckpoint, path, err)
			}
		}
	}
	err := atomicfile.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(kept)
		return err
	})
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open loss history: %w", err)
	}
	return &History{f}, nil
}

// historyUpTo returns header and whole rows of b up to a step.
func historyUpTo(b []byte, step int) ([]byte, error) {
	body, ok := bytes.CutPrefix(b, []byte(historyHeader))
	if !ok {
		return nil, errors.New("it does not begin with the header of a loss history: move it away")
	}
	kept := []byte(historyHeader)
	for line := range bytes.Lines(body) {
		if line[len(line)-1] != '\n' {
			break
		}
		first, _, _ := bytes.Cut(line, []byte(","))
		n, err := strconv.Atoi(string(first))
		if err != nil || n < 0 || bytes.Count(line, []byte(",")) != strings.Count(historyHeader, ",") {
			return nil, fmt.Errorf("row %q is none of a loss history: move the file away", bytes.TrimSpace(line))
		}
		if n > step {
			break
		}
		kept = append(kept, line...)
	}
	return kept, nil
}

// Attach makes the loop write a row at every evaluation and every interval
// steps besides.
func (h *History) Attach(l *Loop, interval int) {
	l.OnStep("loss history", PriorityHistory, func(_ context.Context, s *State) error {
		if interval < 1 || s.Step%interval != 0 || s.WillEvaluate() {
			return nil
		}
		return h.write(s)
	})
	l.OnEval("loss history", PriorityHistory, func(_ context.Context, s *State) error { return h.write(s) })
}

// Close closes the file.
func (h *History) Close() error { return h.f.Close() }

func (h *History) write(s *State) error {
	number := func(x float64, has bool) string {
		if !has {
			return ""
		}
		return strconv.FormatFloat(x, 'g', 9, 64)
	}
	val, _ := s.EvalLoss()
	row := strings.Join([]string{
		strconv.Itoa(s.Step),
		number(s.Loss, s.Step > 0), number(val, s.Evaluated),
		number(s.LearningRate, s.Step > 0), number(s.GradNorm, s.Step > 0),
		strconv.FormatInt(s.Tokens, 10), strconv.FormatFloat(s.Elapsed.Seconds(), 'f', 3, 64),
	}, ",") + "\n"
	// One write, so that a crash leaves whole rows and at most one cut one.
	if _, err := h.f.WriteString(row); err != nil {
		return fmt.Errorf("append to loss history: %w", err)
	}
	return nil
}
