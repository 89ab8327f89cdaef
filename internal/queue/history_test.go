package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// history is a namespace over some minutes: pushes are made and delivered, Tekton
// runs and ends what it may, people interfere, and the queue does some of what it
// decides, or is started anew.
type history struct {
	t        *testing.T
	rng      *rand.Rand
	settings Settings
	now      time.Time
	runs     []*life
	// late holds pushes that are made and not delivered yet.
	late []*life
	tips map[string]string
	// restarts says that the queue is started anew at times; then nobody deletes runs
	// of a branch that is busy, for what followed from them would be forgotten.
	restarts bool
	log      []string
}

// life is a run with what the queue cannot know.
type life struct {
	Run
	pushed   int // its place among the pushes to the branch
	due      time.Time
	admitted bool
	byPerson bool // cancelled or deleted by somebody
	gone     bool
}

func (h *history) say(format string, args ...any) {
	h.log = append(h.log, h.now.Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	for _, line := range h.log {
		h.t.Log(line)
	}
	h.t.Fatalf(format, args...)
}

func (h *history) push(n int, branch string) {
	l := &life{pushed: n, Run: Run{
		Commit: fmt.Sprintf("%s%03d", branch, n), Before: h.tips[branch], State: Waiting,
		// Names as random as commits are.
		Name:  fmt.Sprintf("%08x-%s%03d", h.rng.Uint32(), branch, n),
		Group: Group{pushrun.GitHub, "trainyard/trainyard", branch},
	}}
	h.tips[branch] = l.Commit
	// A delivery takes its time, but less than the queue waits for order.
	l.due = h.now.Add(time.Duration(h.rng.Int64N(int64(h.settings.Settle))))
	h.late = append(h.late, l)
	h.say("push %s after %q", l.Name, l.Before)
}

func (h *history) deliver() {
	h.late = slices.DeleteFunc(h.late, func(l *life) bool {
		if l.due.After(h.now) {
			return false
		}
		l.Created, l.Seen = h.now.Truncate(time.Second), h.now
		h.runs = append(h.runs, l)
		h.say("deliver %s", l.Name)
		return true
	})
}

// tekton ends some of what is active, and all that is cancelled sooner or later.
func (h *history) tekton() {
	for _, l := range h.runs {
		if l.State == Active && h.rng.IntN(12) == 0 || l.State == Ending && h.rng.IntN(3) == 0 {
			l.State = Done
			h.say("done %s", l.Name)
		}
	}
}

func (h *history) person() {
	if len(h.runs) == 0 || h.rng.IntN(60) != 0 {
		return
	}
	l := h.runs[h.rng.IntN(len(h.runs))]
	switch l.State {
	case Waiting:
		l.State, l.byPerson = Ending, true
	case Active:
		l.State, l.byPerson = Ending, true
	case Done:
		l.gone = !h.restarts
	case Ending:
	}
	h.say("a person cancels or deletes %s", l.Name)
}

func (h *history) restart() {
	if !h.restarts || h.rng.IntN(50) != 0 {
		return
	}
	h.say("restart")
	for _, l := range h.runs {
		l.Seen = h.now
	}
}

// there is what the queue knows of: what is there, and what it remembers.
func (h *history) there() []Run {
	busy := map[Group]bool{}
	for _, l := range h.runs {
		if l.State != Done {
			busy[l.Group] = true
		}
	}
	var runs []Run
	for _, l := range h.runs {
		if !l.gone || busy[l.Group] {
			runs = append(runs, l.Run)
		}
	}
	h.rng.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	return runs
}

// queue does what is decided, in any order, now and then only a part of it. It
// returns how many actions it took.
func (h *history) queue(part bool) int {
	actions := Decide(h.there(), h.settings, h.now).Actions
	h.rng.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
	if part && len(actions) > 0 {
		actions = actions[:h.rng.IntN(len(actions)+1)]
	}
	for _, a := range actions {
		i := slices.IndexFunc(h.runs, func(l *life) bool { return l.Name == a.Run.Name })
		l := h.runs[i]
		switch a.Kind {
		case Admit:
			if l.State != Waiting {
				h.fail("%s is let in and does not wait", l.Name)
			}
			l.State, l.admitted = Active, true
		case CancelWaiting, CancelStarted:
			if want := map[Kind]State{CancelWaiting: Waiting, CancelStarted: Active}[a.Kind]; l.State != want {
				h.fail("%s %s, which is in state %d", a.Kind, l.Name, l.State)
			}
			if h.settings.Policy == InTurn || a.Kind == CancelStarted && h.settings.Policy != Cancel {
				h.fail("policy %s: %s %s", h.settings.Policy, a.Kind, l.Name)
			}
			by := h.runs[slices.IndexFunc(h.runs, func(l *life) bool { return l.Name == a.By })]
			if by.Group != l.Group || by.pushed <= l.pushed {
				h.fail("%s %s for %s, which is no newer push to its branch", a.Kind, l.Name, a.By)
			}
			l.State = Ending
		}
		h.say("%s %s %s", a.Kind, l.Name, a.By)
		h.invariants()
	}
	return len(actions)
}

func (h *history) invariants() {
	working, total := map[Group]int{}, 0
	for _, l := range h.runs {
		// A run that never started holds its branch for a moment and does no work.
		if l.State == Active || l.State == Ending && l.admitted {
			working[l.Group]++
			total++
		}
	}
	for g, n := range working {
		if n > 1 {
			h.fail("%d runs are active on %s", n, g)
		}
	}
	if h.settings.MaxRunning > 0 && total > h.settings.MaxRunning {
		h.fail("%d runs are active, more than %d", total, h.settings.MaxRunning)
	}
}

func (h *history) settleDown() {
	for range 5000 {
		h.now = h.now.Add(time.Second)
		h.deliver()
		if h.queue(false) > 0 {
			continue
		}
		if d := Decide(h.there(), h.settings, h.now); d.Again == 0 && len(h.late) == 0 && !slices.ContainsFunc(h.runs, func(l *life) bool { return l.State != Done }) {
			return
		}
		h.tekton()
	}
	h.fail("it does not settle")
}

func (h *history) check() {
	newest := map[Group]*life{}
	for _, l := range h.runs {
		if n := newest[l.Group]; n == nil || l.pushed > n.pushed {
			newest[l.Group] = l
		}
		if h.settings.Policy == InTurn && !l.admitted && !l.byPerson {
			h.fail("%s is lost", l.Name)
		}
	}
	for g, l := range newest {
		if !l.admitted && !l.byPerson {
			h.fail("%s, the newest of %s, is lost", l.Name, g)
		}
	}
}

func TestAnyHistory(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h := &history{
			t: t, rng: rng, now: noon, tips: map[string]string{}, restarts: rng.IntN(2) == 0,
			settings: Settings{
				Policy: []Policy{InTurn, Latest, Cancel}[rng.IntN(3)], MaxRunning: rng.IntN(3),
				Settle: []time.Duration{5 * time.Second, 500 * time.Millisecond}[rng.IntN(2)],
			},
		}
		h.say("seed %d, %+v", seed, h.settings)
		for n := range 1 + rng.IntN(25) {
			h.push(n, []string{"a", "b", "c"}[rng.IntN(1+rng.IntN(3))])
			// A burst, or pushes with some time between.
			for range rng.IntN([]int{1, 3, 30}[rng.IntN(3)] + 1) {
				h.now = h.now.Add(time.Duration(rng.IntN(700)) * time.Millisecond)
				h.deliver()
				h.tekton()
				h.person()
				h.restart()
				h.invariants()
				if rng.IntN(3) > 0 {
					h.queue(rng.IntN(2) == 0)
				}
			}
		}
		h.settleDown()
		h.check()
	}
}

// Pushes that make no sense must not break the queue either: commits that are pushed
// again, circles, a state of every kind.
func TestAnyNonsenseSettles(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 8))
		h := &history{t: t, rng: rng, now: noon, settings: Settings{Policy: []Policy{Latest, Cancel, InTurn}[rng.IntN(3)]}}
		commits := []string{"", "a", "b", "c", "d", "e"}
		for n := range rng.IntN(12) {
			one := Run{
				Name: fmt.Sprint(n), State: State(rng.IntN(4)), Created: noon.Add(-time.Duration(rng.IntN(9)) * time.Second),
				Commit: commits[1+rng.IntN(5)], Before: commits[rng.IntN(6)], Group: Group{Branch: commits[rng.IntN(2)]},
			}
			if got := Order(append(h.there(), one)); len(got) != len(h.runs)+1 {
				t.Fatalf("seed %d: %d runs of %d", seed, len(got), len(h.runs)+1)
			}
			h.runs = append(h.runs, &life{Run: one, pushed: n})
		}
		for turn := 0; ; turn++ {
			actions := Decide(h.there(), h.settings, noon).Actions
			again := Decide(h.there(), h.settings, noon).Actions
			if len(actions) != len(again) {
				t.Fatalf("seed %d: %v and %v of the same runs", seed, actions, again)
			}
			left := slices.ContainsFunc(h.runs, func(l *life) bool { return l.State != Done })
			if len(actions) == 0 && !left {
				break
			}
			if turn > 200 {
				t.Fatalf("seed %d: it does not settle: %+v", seed, h.there())
			}
			for _, a := range actions {
				i := slices.IndexFunc(h.runs, func(l *life) bool { return l.Name == a.Run.Name })
				h.runs[i].State = map[Kind]State{Admit: Active, CancelWaiting: Ending, CancelStarted: Ending}[a.Kind]
			}
			if len(actions) == 0 {
				h.tekton()
			}
		}
	}
}
