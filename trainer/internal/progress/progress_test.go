package progress

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// midway is step 120 of 300, resumed at 100, at 20 steps in 10 seconds.
func midway() Status {
	return Status{
		Step: 120, TotalSteps: 300, Resumed: 100, Time: start(),
		HasLoss: true, Loss: 3.25, LearningRate: 9.5e-4, GradNorm: 0.75,
		HasEval: true, EvalLoss: 3.5, BestLoss: 3.4, BestStep: 100,
		Tokens: 120 * 2048, StepTokens: 2048, TokensPerEpoch: 100_000,
		Session: 10 * time.Second, SessionTokens: 20 * 2048,
	}
}

func metrics(t *testing.T, d Document) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, x := range d.Metrics {
		if _, twice := m[x.Name]; twice {
			t.Errorf("metric %s is there twice", x.Name)
		}
		m[x.Name] = x.Value
	}
	return m
}

func TestDocumentHasTheNamesOfTheKEP(t *testing.T) {
	b, err := json.Marshal(midway().Document())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"progressPercentage":40,"estimatedRemainingSeconds":90,"metrics":[` +
		`{"name":"step","value":"120"},{"name":"total_steps","value":"300"},` +
		`{"name":"loss","value":"3.25"},{"name":"eval_loss","value":"3.5"},{"name":"best_eval_loss","value":"3.4"},` +
		`{"name":"currentEpoch","value":"2.4576"},{"name":"totalEpochs","value":"6.144"},` +
		`{"name":"learning_rate","value":"0.00095"},{"name":"grad_norm","value":"0.75"},` +
		`{"name":"tokens_per_second","value":"4096"}],"lastUpdatedTime":"2026-03-01T12:00:00Z"}`
	if string(b) != want {
		t.Errorf("document\n%s\nwant\n%s", b, want)
	}
}

func TestDocumentStaysInTheLimits(t *testing.T) {
	for name, s := range map[string]Status{
		"nothing done":    {TotalSteps: 10, Time: start()},
		"no steps":        {Time: start()},
		"past the end":    {Step: 11, TotalSteps: 10, Time: start()},
		"very slow":       {Step: 1, TotalSteps: math.MaxInt32, Session: 1000 * time.Hour, Time: start()},
		"a long reason":   {Step: 1, TotalSteps: 2, Final: true, StopReason: strings.Repeat("é", 200), Time: start()},
		"a stopped run":   {Step: 5, TotalSteps: 10, Final: true, StopReason: "flat", Time: start()},
		"a finished one":  {Step: 10, TotalSteps: 10, Final: true, Time: start()},
		"another zone":    {Step: 10, TotalSteps: 10, Time: start().In(time.FixedZone("x", 3600))},
		"large and small": {Step: 1, TotalSteps: 2, HasLoss: true, Loss: 1e300, GradNorm: 1e-300, Time: start()},
	} {
		d := s.Document()
		if d.ProgressPercentage < 0 || d.ProgressPercentage > 100 {
			t.Errorf("%s: %d %%", name, d.ProgressPercentage)
		}
		if n := d.EstimatedRemainingSeconds; n != nil && (*n < 0 || *n > math.MaxInt32) {
			t.Errorf("%s: %d seconds", name, *n)
		}
		if d.LastUpdatedTime != "2026-03-01T12:00:00Z" {
			t.Errorf("%s: time %s", name, d.LastUpdatedTime)
		}
		for _, m := range d.Metrics {
			if len([]rune(m.Name)) > 64 || len([]rune(m.Value)) > 64 || m.Value == "" {
				t.Errorf("%s: metric %+v", name, m)
			}
		}
	}
	if d := (Status{TotalSteps: 10, Time: start()}).Document(); d.EstimatedRemainingSeconds != nil {
		t.Error("an estimate before the first step")
	}
	if d := (Status{Step: 999, TotalSteps: 1000, Time: start()}).Document(); d.ProgressPercentage != 99 {
		t.Errorf("%d %% one step before the end", d.ProgressPercentage)
	}
	if m := metrics(t, Status{Step: 5, TotalSteps: 10, Final: true, StopReason: "flat"}.Document()); m["stop_reason"] != "flat" {
		t.Errorf("metrics %v, want the stop reason", m)
	}
}

func TestFileIsReplacedNotMoreOftenThanAsked(t *testing.T) {
	dir := t.TempDir()
	f := NewFile(dir, time.Second, slog.New(slog.DiscardHandler))
	percent := func() int {
		b, err := os.ReadFile(filepath.Join(dir, FileName))
		if err != nil {
			t.Fatal(err)
		}
		var d Document
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		return d.ProgressPercentage
	}
	for _, c := range []struct {
		after time.Duration
		step  int
		final bool
		want  int
	}{
		{0, 10, false, 10}, {500 * time.Millisecond, 20, false, 10}, {time.Second, 30, false, 30}, {1100 * time.Millisecond, 100, true, 100},
	} {
		f.Report(t.Context(), Status{Step: c.step, TotalSteps: 100, Final: c.final, Time: start().Add(c.after)})
		if got := percent(); got != c.want {
			t.Errorf("after %v: %d %%, want %d", c.after, got, c.want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("directory holds %v, %v; want the document alone", left, err)
	}
}

func TestFileThatCannotBeWrittenIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	f := NewFile(filepath.Join(t.TempDir(), "missing"), 0, slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 5 {
		f.Report(t.Context(), Status{Step: i, TotalSteps: 5, Time: start()})
	}
	if n := strings.Count(log.String(), "training goes on"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

func TestPlainWritesLinesNowAndThen(t *testing.T) {
	var out bytes.Buffer
	p := NewPlain(&out)
	s := midway()
	p.Report(t.Context(), s)
	s.Step, s.Time = 121, s.Time.Add(time.Second)
	p.Report(t.Context(), s) // too soon
	s.Step, s.Evaluated = 122, true
	p.Report(t.Context(), s)
	s.Final = true
	p.Report(t.Context(), s) // the same step: said already
	want := " 40% step 120/300 loss 3.2500 val 3.5000 lr 9.50e-04 norm 0.75 4096 tok/s ETA 1m30s\n" +
		" 40% step 122/300 loss 3.2500 val 3.5000 lr 9.50e-04 norm 0.75 4096 tok/s ETA 1m21s\n"
	if out.String() != want {
		t.Errorf("lines\n%swant\n%s", out.String(), want)
	}
}

func TestTerminalDrawsOneLineThatFits(t *testing.T) {
	for _, color := range []bool{false, true} {
		var out bytes.Buffer
		term := NewTerminal(&out, func() int { return 40 }, color)
		s := midway()
		term.Report(t.Context(), s)
		term.Close()
		text := out.String()
		if got := strings.Contains(text, "\x1b[32m"); got != color {
			t.Errorf("color %v: coloured %v", color, got)
		}
		plain := strings.NewReplacer("\r", "", "\x1b[K", "", "\x1b[32m", "", "\x1b[0m", "", "\n", "").Replace(text)
		if plain != "████████░░░░░░░░░░░░  40% step 120/300 l" || strings.Count(text, "\n") != 1 {
			t.Errorf("color %v: line %q", color, plain)
		}
	}
}

func TestTerminalKeepsEvaluationsAboveTheBar(t *testing.T) {
	var out bytes.Buffer
	term := NewTerminal(&out, func() int { return 200 }, false)
	s := midway()
	s.Evaluated = true
	term.Report(t.Context(), s)
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "val 3.5000") || !strings.Contains(lines[1], "█") {
		t.Errorf("lines %q", lines)
	}
}

func TestClipKeepsRunesWhole(t *testing.T) {
	if got := clip(strings.Repeat("€", 70)); got != strings.Repeat("€", 64) {
		t.Errorf("%d bytes", len(got))
	}
	if got := clip("short"); got != "short" {
		t.Errorf("%q", got)
	}
}
