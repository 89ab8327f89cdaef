package train

import (
	"strings"
	"testing"
	"time"
)

func TestPoliciesEndTheRun(t *testing.T) {
	// Held-out losses of the steps 0, 5, 10, 15, 20.
	losses := func(l ...float64) map[int]float64 {
		m := map[int]float64{}
		for i, x := range l {
			m[i+1] = x
		}
		return m
	}
	for name, c := range map[string]struct {
		losses   map[int]float64
		attach   func(*Loop)
		step     int
		reason   string
		finished bool
	}{
		"flat": {losses(9, 5, 5.001, 4.9995, 1), func(l *Loop) { StopWhenFlat(l, 3, .002) }, 15,
			"flat: the last 3 evaluations lie between 4.9995 and 5.0010", true},
		"not flat enough": {losses(9, 5, 5.001, 4.9985, 1), func(l *Loop) { StopWhenFlat(l, 3, .002) }, 20, "", true},
		"no improvement": {losses(9, 5, 6, 5.5, 1), func(l *Loop) { StopWithoutImprovement(l, 2) }, 15,
			"no improvement: the best loss 5.0000 of step 5 is 2 evaluations old", true},
		"improvement in time":          {losses(9, 5, 6, 4, 5), func(l *Loop) { StopWithoutImprovement(l, 2) }, 20, "", true},
		"a better start does not help": {losses(1, 5, 4, 3, 2), func(l *Loop) { StopWithoutImprovement(l, 2) }, 20, "", true},
		"policies that are off": {losses(1, 1, 1, 1, 1), func(l *Loop) {
			StopWhenFlat(l, 0, 1)
			StopWithoutImprovement(l, 0)
			StopAfter(l, 0)
		}, 20, "", true},
		"time": {nil, func(l *Loop) { StopAfter(l, 10*time.Millisecond) }, 8, "time: 10ms reached at step 8 of 20", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), testConfig())
			r.model.heldAt = c.losses
			c.attach(r.loop)
			s := mustRun(t, r)
			if s.Step != c.step || s.StopReason != c.reason {
				t.Errorf("step %d, reason %q; want %d, %q", s.Step, s.StopReason, c.step, c.reason)
			}
			rec, _, err := OpenCheckpoint(r.run, r.saver.Identity)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Step != c.step || rec.StopReason != c.reason || rec.Finished != c.finished {
				t.Errorf("saved step %d, reason %q, finished %v", rec.Step, rec.StopReason, rec.Finished)
			}
			if last := s.Evals[len(s.Evals)-1]; last.Step != c.step {
				t.Errorf("last evaluation at step %d, want %d", last.Step, c.step)
			}
		})
	}
}

func TestTimeIsMeasuredFromThisProcess(t *testing.T) {
	dir := t.TempDir()
	steps := 0
	for range 9 {
		r := newRig(t, dir, testConfig()).open(t)
		StopAfter(r.loop, 10*time.Millisecond)
		s := mustRun(t, r)
		steps++
		if s.Step == s.Total {
			break
		}
		if !strings.HasPrefix(s.StopReason, "time: ") {
			t.Fatalf("reason %q", s.StopReason)
		}
	}
	if steps < 2 || steps > 4 {
		t.Errorf("20 steps took %d processes of some 8 steps", steps)
	}
}
