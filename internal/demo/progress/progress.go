// Package progress tells a person what a long program is doing: one line for
// each step, with its time. On a terminal the line of the running step changes;
// elsewhere there are plain lines, and a running step repeats itself now and then.
package progress

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Log prints steps.
type Log struct {
	out      io.Writer
	terminal bool
	color    bool
	now      func() time.Time
	every    time.Duration
	columns  int

	mu sync.Mutex // of out
}

// nameWidth is the width of a step's name.
const nameWidth = 18

// Options of a Log.
type Options struct {
	// Terminal says that out shows a line that is written again in its place.
	Terminal bool
	// Color allows colours.
	Color bool
	// Columns of the terminal, 80 when zero: a longer line could not be written
	// again in its place.
	Columns int
	// Now is the clock.
	Now func() time.Time
}

// New returns a Log that writes to out.
func New(out io.Writer, options Options) *Log {
	every := 15 * time.Second
	if options.Terminal {
		every = 200 * time.Millisecond
	}
	columns := options.Columns
	if columns == 0 {
		columns = 80
	}
	return &Log{out: out, terminal: options.Terminal, color: options.Color, now: options.Now, every: every, columns: columns}
}

// Step is a step that runs.
type Step struct {
	name    string
	started time.Time
	mu      sync.Mutex
	doing   string
	result  string
}

// Doing says what the step is at.
func (s *Step) Doing(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing = fmt.Sprintf(format, args...)
}

// Done says what came of the step, for its last line.
func (s *Step) Done(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result = fmt.Sprintf(format, args...)
}

func (s *Step) said() (doing, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doing, s.result
}

// Do runs a step and prints its progress and its end. An error goes to the
// caller, with the step's name.
func (l *Log) Do(ctx context.Context, name string, run func(context.Context, *Step) error) error {
	step := &Step{name: name, started: l.now()}
	if !l.terminal {
		l.print("  %-*s started\n", nameWidth, name)
	}
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Add(1)
	go func() {
		defer ticking.Done()
		l.tick(step, stop)
	}()
	err := run(ctx, step)
	close(stop)
	ticking.Wait()
	took := l.now().Sub(step.started)
	_, result := step.said()
	if err != nil {
		why := "failed"
		if ctx.Err() != nil {
			why = "interrupted"
		}
		l.line("✗", "31", name, took, why)
		return fmt.Errorf("%s: %w", name, err)
	}
	l.line("✓", "32", name, took, result)
	return nil
}

// Note prints a line of its own, also while a step runs.
func (l *Log) Note(format string, args ...any) {
	clear := ""
	if l.terminal {
		clear = clearLine
	}
	l.print("%s  %s\n", clear, fmt.Sprintf(format, args...))
}

// clearLine goes to the start of the terminal's line and clears it.
const clearLine = "\r\x1b[K"

func (l *Log) tick(step *Step, stop <-chan struct{}) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			l.running(step)
		}
	}
}

// running prints what a step is at.
func (l *Log) running(step *Step) {
	doing, _ := step.said()
	line := fmt.Sprintf("… %-*s %7s  %s", nameWidth, step.name, Duration(l.now().Sub(step.started)), printable(doing))
	if l.terminal {
		l.print("%s%s", clearLine, short(line, l.columns-1))
	} else {
		l.print("%s\n", strings.TrimRight(line, " "))
	}
}

func (l *Log) line(mark, color, name string, took time.Duration, said string) {
	clear := ""
	if l.terminal {
		clear = clearLine
	}
	if l.color {
		mark = "\x1b[" + color + "m" + mark + "\x1b[0m"
	}
	line := fmt.Sprintf("%s%s %-*s %7s  %s", clear, mark, nameWidth, name, Duration(took), printable(said))
	l.print("%s\n", strings.TrimRight(line, " "))
}

func (l *Log) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format, args...)
}

// Duration writes a time as a person would: 0.4 s, 12 s, 3 m 05 s.
func Duration(d time.Duration) string {
	switch {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 59500*time.Millisecond:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	seconds := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d m %02d s", seconds/60, seconds%60)
}

// short cuts a text to so many characters.
func short(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:max(0, n-1)]) + "…"
	}
	return text
}

// printable puts a text on one line: what a step is at can be the words of
// another program, with newlines and a terminal's control codes in them.
func printable(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}
