// Package progress tells a person what a long program is doing: one line for
// each step, with its time. On a terminal the line of the running step changes;
// elsewhere there are plain lines, and a running step repeats itself now and then.
package progress

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Log prints steps.
type Log struct {
	out      io.Writer
	terminal bool
	color    bool
	now      func() time.Time
	every    time.Duration
	width    int

	mu      sync.Mutex
	current *Step
	times   []Time
}

// Time is how long a step took.
type Time struct {
	Step string
	Took time.Duration
	Said string
}

// Options of a Log.
type Options struct {
	// Terminal says that out shows a line that is written again in its place.
	Terminal bool
	// Color allows colours.
	Color bool
	// Now is the clock.
	Now func() time.Time
}

// New returns a Log that writes to out.
func New(out io.Writer, options Options) *Log {
	every := 15 * time.Second
	if options.Terminal {
		every = 200 * time.Millisecond
	}
	return &Log{out: out, terminal: options.Terminal, color: options.Color, now: options.Now, every: every, width: 18}
}

// Step is a step that runs.
type Step struct {
	log     *Log
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
	step := &Step{log: l, name: name, started: l.now()}
	l.mu.Lock()
	l.current = step
	l.mu.Unlock()
	if !l.terminal {
		l.print("  %-*s started\n", l.width, name)
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
		l.line("✗", "31", name, took, "failed")
		return fmt.Errorf("%s: %w", name, err)
	}
	l.line("✓", "32", name, took, result)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = append(l.times, Time{name, took, result})
	return nil
}

// Times returns how long each finished step took.
func (l *Log) Times() []Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Time(nil), l.times...)
}

func (l *Log) tick(step *Step, stop <-chan struct{}) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			doing, _ := step.said()
			took := Duration(l.now().Sub(step.started))
			if l.terminal {
				l.print("\r\x1b[K… %-*s %7s  %s", l.width, step.name, took, short(doing, 90))
			} else {
				l.print("… %-*s %7s  %s\n", l.width, step.name, took, doing)
			}
		}
	}
}

func (l *Log) line(mark, color, name string, took time.Duration, said string) {
	clear := ""
	if l.terminal {
		clear = "\r\x1b[K"
	}
	if l.color {
		mark = "\x1b[" + color + "m" + mark + "\x1b[0m"
	}
	l.print("%s%s %-*s %7s  %s\n", clear, mark, l.width, name, Duration(took), said)
}

func (l *Log) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format, args...)
}

// Duration writes a time as a person would: 0.4 s, 12 s, 3 min 05 s.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

func short(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
