package queue

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// noon is when every decision is taken.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// r describes a run in one line: "name state second before branch", where second is
// that of its creation before noon, before the name of the run whose commit the
// branch had (or a dash), and a branch that is left out is main. The commit of a run
// is its name.
func r(t *testing.T, line string) Run {
	t.Helper()
	fields := strings.Fields(line)
	states := map[string]State{"waiting": Waiting, "active": Active, "ending": Ending, "done": Done}
	state, known := states[fields[1]]
	ago, err := time.ParseDuration(fields[2])
	if !known || err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	one := Run{
		Name: fields[0], Commit: fields[0], State: state, Created: noon.Add(-ago), Seen: noon.Add(-ago),
		Group: Group{pushrun.GitHub, "trainyard/trainyard", "main"},
	}
	if fields[3] != "-" {
		one.Before = fields[3]
	}
	if len(fields) > 4 {
		one.Group.Branch = fields[4]
	}
	return one
}

func all(t *testing.T, lines ...string) []Run {
	t.Helper()
	var runs []Run
	for _, line := range lines {
		runs = append(runs, r(t, line))
	}
	return runs
}

func done(d Decision) string {
	var lines []string
	for _, a := range d.Actions {
		line := string(a.Kind) + " " + a.Run.Name
		if a.By != "" {
			line += " for " + a.By
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		runs []string
		want string
	}{
		"by time":                             {[]string{"b done 1s -", "a done 2s -"}, "a b"},
		"by name within a second":             {[]string{"b done 1s -", "a done 1s -"}, "a b"},
		"by the push before within a second":  {[]string{"a done 1s b", "b done 1s c", "c done 1s -"}, "c b a"},
		"delivered late":                      {[]string{"second done 9s first", "first done 2s -"}, "first second"},
		"delivered late, before a third":      {[]string{"second done 9s first", "third done 5s -", "first done 2s -"}, "first second third"},
		"the one between is gone":             {[]string{"a done 2s -", "c done 1s b"}, "a c"},
		"a force push":                        {[]string{"a done 3s -", "b done 2s a", "forced done 2s b"}, "a b forced"},
		"pushed, taken back, pushed again":    {[]string{"b done 5s a", "a done 2s b"}, "b a"},
		"a circle of three":                   {[]string{"a done 3s c", "b done 2s a", "c done 9s b"}, "c a b"},
		"what follows from a circle is after": {[]string{"z done 9s b", "a done 5s b", "b done 3s a"}, "b z a"},
		"a circle, and a late delivery":       {[]string{"a done 9s b", "b done 8s a", "a2 done 7s root", "root done 1s -"}, "a b root a2"},
		"follows from itself":                 {[]string{"a done 2s a", "b done 1s -"}, "a b"},
		"none":                                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			runs := all(t, c.runs...)
			for range 2 {
				var got []string
				for _, run := range Order(runs) {
					got = append(got, run.Name)
				}
				if strings.Join(got, " ") != c.want {
					t.Errorf("%v, want %s", got, c.want)
				}
				slices.Reverse(runs) // the order that they are listed in counts for nothing
			}
		})
	}
}

func TestOrderOfTwoRunsOfOneCommit(t *testing.T) {
	runs := all(t, "after done 9s x", "first done 5s -", "again done 4s -")
	runs[1].Commit, runs[2].Commit = "x", "x"
	if got := Order(runs); got[2].Name != "after" {
		t.Errorf("%v", got)
	}
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		runs                  []string
		max                   int
		queue, latest, cancel string
	}{
		"nothing":          {},
		"a first run":      {runs: []string{"a waiting 1s -"}, queue: "admit a", latest: "admit a", cancel: "admit a"},
		"one after a done": {runs: []string{"a done 20s -", "b waiting 1s a"}, queue: "admit b", latest: "admit b", cancel: "admit b"},
		"one behind an active": {
			runs: []string{"a active 20s -", "b waiting 10s a"}, cancel: "cancel-started a for b",
		},
		"two behind an active": {
			runs:   []string{"a active 20s -", "b waiting 10s a", "c waiting 9s b"},
			latest: "cancel-pending b for c", cancel: "cancel-pending b for c; cancel-started a for c",
		},
		"three at once": {
			runs:   []string{"c waiting 10s b", "a waiting 10s -", "b waiting 10s a"},
			queue:  "admit a",
			latest: "admit c; cancel-pending a for c; cancel-pending b for c",
			cancel: "admit c; cancel-pending a for c; cancel-pending b for c",
		},
		"three just now: who is overtaken shows later": {
			runs:  []string{"c waiting 1s b", "a waiting 1s -", "b waiting 1s a"},
			queue: "admit a", latest: "admit c", cancel: "admit c",
		},
		"a new one does not overtake at once": {
			runs: []string{"a active 20s -", "b waiting 10s a", "c waiting 1s b"}, cancel: "cancel-started a for b",
		},
		"behind a cancelled one that is not done": {runs: []string{"a ending 20s -", "b waiting 10s a"}},
		"older than the active one": {
			runs: []string{"b active 20s a", "a waiting 10s -"}, latest: "cancel-pending a for b", cancel: "cancel-pending a for b",
		},
		"older than one that ends": {runs: []string{"b ending 20s a", "a waiting 10s -"}},
		"older than one that is done": {
			runs: []string{"b done 20s a", "a waiting 10s -"}, queue: "admit a", latest: "admit a", cancel: "admit a",
		},
		"a force push": {
			runs:   []string{"a active 30s -", "b waiting 20s a", "forced waiting 10s b"},
			latest: "cancel-pending b for forced", cancel: "cancel-pending b for forced; cancel-started a for forced",
		},
		"pushed, taken back, pushed again": {
			runs:   []string{"b waiting 20s a", "a waiting 10s b"},
			queue:  "admit b",
			latest: "admit a; cancel-pending b for a",
			cancel: "admit a; cancel-pending b for a",
		},
		"two active, by a person's hand": {
			runs: []string{"a active 30s -", "b active 20s a"}, cancel: "cancel-started a for b",
		},
		"branches do not see each other": {
			runs:  []string{"a active 30s -", "b waiting 20s a other", "c waiting 10s b third"},
			queue: "admit b; admit c", latest: "admit b; admit c", cancel: "admit b; admit c",
		},
		"a limit over all branches": {
			runs: []string{"a active 30s -", "b waiting 20s - other", "c waiting 15s - third", "d waiting 10s - fourth"}, max: 2,
			queue: "admit b", latest: "admit b", cancel: "admit b",
		},
		"a limit that cancelled runs fill": {
			runs: []string{"a ending 30s -", "b waiting 20s - other"}, max: 1,
		},
		"a limit keeps nobody from being overtaken": {
			runs: []string{"x active 30s - other", "a waiting 20s -", "b waiting 10s a"}, max: 1,
			latest: "cancel-pending a for b", cancel: "cancel-pending a for b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for policy, want := range map[Policy]string{InTurn: c.queue, Latest: c.latest, Cancel: c.cancel} {
				s := Settings{Policy: policy, MaxRunning: c.max, Settle: 5 * time.Second}
				d := Decide(all(t, c.runs...), s, noon)
				if done(d) != want {
					t.Errorf("%s: %s; want %s", policy, done(d), want)
				}
			}
		})
	}
}

func TestDecideSaysWhyARunWaits(t *testing.T) {
	for name, c := range map[string]struct {
		runs []string
		max  int
		want Wait
	}{
		"for the active one":                             {[]string{"a active 9s -", "b waiting 8s a"}, 0, Wait{Behind: "a", Reason: "until run a of the same branch has ended"}},
		"for the one that works, not for those that end": {[]string{"x ending 20s -", "a active 9s x", "y ending 9s a", "b waiting 8s y"}, 0, Wait{Behind: "a", Reason: "until run a of the same branch has ended"}},
		"for an older one":                               {[]string{"a waiting 9s -", "b waiting 8s a"}, 0, Wait{Behind: "a", Reason: "for run a of the same branch, which goes first"}},
		"for the limit":                                  {[]string{"a active 9s - other", "b waiting 8s a"}, 1, Wait{Reason: "until an active run of another branch has ended: max-running is 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(all(t, c.runs...), Settings{Policy: InTurn, MaxRunning: c.max}, noon)
			if len(d.Waits) != 1 || d.Waits[0].Run.Name != "b" || d.Waits[0].Behind != c.want.Behind || d.Waits[0].Reason != c.want.Reason {
				t.Errorf("%+v", d.Waits)
			}
		})
	}
}

func TestDecideLeavesARunAloneThatDoesNotSayWhichPush(t *testing.T) {
	runs := all(t, "bad waiting 9s -", "worse active 9s -", "gone done 9s -", "a waiting 8s -")
	for i := range 3 {
		runs[i].Err = errors.New("its annotation is broken")
	}
	for _, policy := range []Policy{InTurn, Latest, Cancel} {
		d := Decide(runs, Settings{Policy: policy}, noon)
		if done(d) != "admit a" || len(d.Unread) != 1 || d.Unread[0].Name != "bad" {
			t.Errorf("%s: %s, %v", policy, done(d), d.Unread)
		}
		if d := Decide(runs, Settings{Policy: policy, MaxRunning: 1}, noon); done(d) != "" {
			t.Errorf("%s: an active run counts, whatever it says: %s", policy, done(d))
		}
	}
}

func TestDecideLooksAgainWhenARunHasSettled(t *testing.T) {
	runs := all(t, "a active 20s -", "b waiting 3s a", "c waiting 1s b")
	for policy, want := range map[Policy]time.Duration{InTurn: 0, Latest: 2 * time.Second, Cancel: 2 * time.Second} {
		if d := Decide(runs, Settings{Policy: policy, Settle: 5 * time.Second}, noon); d.Again != want {
			t.Errorf("%s: %v, want %v", policy, d.Again, want)
		}
	}
	if d := Decide(all(t, "a active 20s -", "b waiting 9s a"), Settings{Policy: Latest, Settle: 5 * time.Second}, noon); d.Again != 0 {
		t.Errorf("all have settled: %v", d.Again)
	}
}
