package progress

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	barEvery   = 100 * time.Millisecond
	plainEvery = 5 * time.Second
	barWidth   = 20
)

// Terminal shows one line that is drawn anew in place.
type Terminal struct {
	w        io.Writer
	width    func() int // columns of the terminal
	color    bool
	throttle throttle
	open     bool // the cursor stands behind a bar
}

var _ Sink = (*Terminal)(nil)

// NewTerminal returns the sink of a terminal; without color (NO_COLOR) it moves
// the cursor but never colours.
func NewTerminal(w io.Writer, width func() int, color bool) *Terminal {
	return &Terminal{w: w, width: width, color: color, throttle: throttle{every: barEvery}}
}

// Report draws the bar; an evaluation leaves a line above it.
func (t *Terminal) Report(_ context.Context, s Status) {
	if s.Evaluated {
		fmt.Fprintf(t.w, "\r\x1b[K%s\n", fit(line(s), t.width()))
	}
	if !t.throttle.pass(s) && !s.Evaluated {
		return
	}
	done := s.Percent() * barWidth / 100
	bar := strings.Repeat("█", done)
	rest := strings.Repeat("░", barWidth-done)
	text := fit(" "+line(s), t.width()-barWidth)
	if t.color {
		bar = "\x1b[32m" + bar + "\x1b[0m"
	}
	fmt.Fprintf(t.w, "\r%s%s%s\x1b[K", bar, rest, text)
	t.open = true
}

// Close ends the line.
func (t *Terminal) Close() {
	if t.open {
		fmt.Fprintln(t.w)
		t.open = false
	}
}

// Plain writes a line now and then, for logs.
type Plain struct {
	w        io.Writer
	throttle throttle
	last     int
}

var _ Sink = (*Plain)(nil)

// NewPlain returns the sink of anything that is no terminal.
func NewPlain(w io.Writer) *Plain {
	return &Plain{w: w, throttle: throttle{every: plainEvery}, last: -1}
}

// Report writes a line at an evaluation, at the end, and every few seconds.
func (p *Plain) Report(_ context.Context, s Status) {
	if !p.throttle.pass(s) && !s.Evaluated {
		return
	}
	if s.Final && p.last == s.Step {
		return // said already
	}
	p.last = s.Step
	fmt.Fprintln(p.w, line(s))
}

// Close does nothing.
func (p *Plain) Close() {}

// line is one status in words.
func line(s Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%3d%% step %d/%d", s.Percent(), s.Step, s.TotalSteps)
	if s.HasLoss {
		fmt.Fprintf(&b, " loss %.4f", s.Loss)
	}
	if s.HasEval {
		fmt.Fprintf(&b, " val %.4f", s.EvalLoss)
	}
	if s.HasLoss {
		fmt.Fprintf(&b, " lr %.2e norm %.2f", s.LearningRate, s.GradNorm)
	}
	if r := s.TokensPerSecond(); r > 0 {
		fmt.Fprintf(&b, " %s tok/s", short(r))
	}
	if left, ok := s.Remaining(); ok && !s.Final && left > 0 {
		fmt.Fprintf(&b, " ETA %s", left.Round(time.Second))
	}
	return b.String()
}

func short(x float64) string {
	switch {
	case x >= 1e6:
		return fmt.Sprintf("%.1fM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.1fk", x/1e3)
	}
	return fmt.Sprintf("%.0f", x)
}

// fit cuts s to a number of columns, so that a bar never wraps.
func fit(s string, columns int) string {
	if columns < 1 {
		return ""
	}
	for utf8.RuneCountInString(s) > columns {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
