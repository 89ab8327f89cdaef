package progress

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

// golden compares text with a file; escapes are written out in it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	text = strings.NewReplacer("\x1b", `\x1b`, "\r", `\r`).Replace(text)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
}

func TestLines(t *testing.T) {
	tests := map[string]Options{
		"plain":             {},
		"terminal":          {Terminal: true, Columns: 60},
		"terminal-in-color": {Terminal: true, Color: true, Columns: 60},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			at := &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
			options.Now = at.now
			log := New(&out, options)
			log.every = time.Hour // lines of a running step are asked for

			err := log.Do(t.Context(), "prerequisites", func(_ context.Context, step *Step) error {
				at.pass(400 * time.Millisecond)
				step.Done("Docker %s", "29.0.1")
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			err = log.Do(t.Context(), "images", func(_ context.Context, step *Step) error {
				log.running(step)
				log.Note("images come from: %s", "source")
				at.pass(15 * time.Second)
				step.Doing("compiling: %d packages of at most %d, which takes a while on two cores", 12, 345)
				log.running(step)
				at.pass(5 * time.Minute)
				step.Doing("words of\tothers\r\n\x1b[31mred\x07")
				log.running(step)
				step.Done("from source,\nbuilt")
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Do(t.Context(), "s3", func(context.Context, *Step) error { return nil }); err != nil {
				t.Fatal(err)
			}
			failure := errors.New("port 7070 is taken")
			err = log.Do(t.Context(), "a step of a long name", func(_ context.Context, step *Step) error {
				at.pass(61 * time.Second)
				step.Done("what it would have said")
				return failure
			})
			if !errors.Is(err, failure) || err.Error() != "a step of a long name: port 7070 is taken" {
				t.Errorf("error %v", err)
			}
			golden(t, name, out.String())
		})
	}
}

// buffer can be written to and read by several goroutines.
type buffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

func TestARunningStepRepeatsItselfUntilItEnds(t *testing.T) {
	for name, terminal := range map[string]bool{"plain": false, "terminal": true} {
		t.Run(name, func(t *testing.T) {
			var out buffer
			log := New(&out, Options{Terminal: terminal, Now: time.Now})
			log.every = time.Millisecond
			err := log.Do(t.Context(), "cluster", func(_ context.Context, step *Step) error {
				for i := range 3 {
					step.Doing("phase %d", i)
					deadline := time.Now().Add(10 * time.Second)
					for want := "phase " + string(rune('0'+i)); !strings.Contains(out.String(), want); time.Sleep(time.Millisecond) {
						if time.Now().After(deadline) {
							t.Fatalf("no line says %q", want)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			ended := out.String()
			time.Sleep(20 * time.Millisecond)
			if now := out.String(); now != ended {
				t.Errorf("after its end it says %q", strings.TrimPrefix(now, ended))
			}
		})
	}
}

func TestTheContextIsTheSteps(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted")
	cancel(interrupt)
	var out buffer
	err := New(&out, Options{Now: time.Now}).Do(ctx, "cluster", func(ctx context.Context, _ *Step) error { return context.Cause(ctx) })
	if !errors.Is(err, interrupt) || !strings.Contains(out.String(), "interrupted\n") {
		t.Errorf("error %v, it says %q", err, out.String())
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0.0 s",
		440 * time.Millisecond:    "0.4 s",
		9949 * time.Millisecond:   "9.9 s",
		9950 * time.Millisecond:   "10 s",
		59 * time.Second:          "59 s",
		59499 * time.Millisecond:  "59 s",
		59500 * time.Millisecond:  "1 m 00 s",
		185 * time.Second:         "3 m 05 s",
		119600 * time.Millisecond: "2 m 00 s",
		75 * time.Minute:          "75 m 00 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestALineFitsTheTerminal(t *testing.T) {
	for _, columns := range []int{0, 1, 2, 40, 200} {
		var out bytes.Buffer
		log := New(&out, Options{Terminal: true, Now: time.Now, Columns: columns})
		log.running(&Step{name: "images", started: time.Now(), doing: strings.Repeat("ü", 300)})
		line := []rune(strings.TrimPrefix(out.String(), clearLine))
		if columns == 0 {
			columns = 80
		}
		if len(line) >= max(columns, 2) { // the last column would wrap in some terminals
			t.Errorf("%d columns: a line of %d characters", columns, len(line))
		}
	}
}
