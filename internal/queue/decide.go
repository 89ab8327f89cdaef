package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Policy says what becomes of runs that a newer push has overtaken.
type Policy string

// The policies.
const (
	InTurn Policy = "queue"  // each run in turn, the oldest first
	Latest Policy = "latest" // the active run ends; of those that wait only the newest stays
	Cancel Policy = "cancel" // as latest, and a newer push also cancels the active run
)

// Known says whether it is one of them.
func (p Policy) Known() bool { return p == InTurn || p == Latest || p == Cancel }

// Settings are what people choose.
type Settings struct {
	Policy     Policy
	MaxRunning int // of all branches together; 0 is no limit
	// Settle is how long a run must be known before it overtakes another or is
	// overtaken: deliveries of one moment come in any order, and only when all are
	// here does the order of the pushes show.
	Settle time.Duration
}

// Defaults are the settings when nobody chooses.
func Defaults() Settings { return Settings{Policy: Latest, Settle: 5 * time.Second} }

// Kind is what is done with a run.
type Kind string

// The kinds of actions.
const (
	Admit         Kind = "admit"          // let a waiting run in
	CancelWaiting Kind = "cancel-pending" // it never starts
	CancelStarted Kind = "cancel-started" // its tasks end, those of finally run
)

// Action is one change of one run.
type Action struct {
	Kind   Kind
	Run    Run
	By     string // name of the run that overtook it, for a cancellation
	Reason string // a sentence
}

// Wait is a run that stays held back.
type Wait struct {
	Run    Run
	Behind string // name of the run that it waits for; empty when the number is the limit
	Reason string // the end of a sentence that begins "it waits"
}

// Decision is what is to be done now.
type Decision struct {
	Actions []Action
	Waits   []Wait
	Unread  []Run // waiting runs that do not say which push they are from; they stay
	// Again is when to look again although nothing has changed; 0 is never.
	Again time.Duration
}

// Decide says what a queue does about these runs. Done in any order, or in part, its
// actions never make two runs of a branch active.
func Decide(runs []Run, s Settings, now time.Time) Decision {
	var d Decision
	var groups []Group
	members := map[Group][]Run{}
	working := 0
	for _, r := range runs {
		if r.State == Active || r.State == Ending {
			working++
		}
		if r.Err != nil {
			if r.State == Waiting {
				d.Unread = append(d.Unread, r)
			}
			continue
		}
		if members[r.Group] == nil {
			groups = append(groups, r.Group)
		}
		members[r.Group] = append(members[r.Group], r)
	}
	var ready []Run
	for _, g := range groups {
		ready = append(ready, d.group(Order(members[g]), s, now)...)
	}
	slices.SortFunc(ready, func(a, b Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	for _, r := range ready {
		if s.MaxRunning > 0 && working >= s.MaxRunning {
			d.Waits = append(d.Waits, Wait{Run: r, Reason: fmt.Sprintf("until an active run of another branch has ended: max-running is %d", s.MaxRunning)})
			continue
		}
		working++
		d.Actions = append(d.Actions, Action{Kind: Admit, Run: r, Reason: "no other run of " + r.Group.String() + " is active"})
	}
	return d
}

// group judges the runs of one branch, in the order of their pushes, and returns the
// one that may start, if there is one.
func (d *Decision) group(runs []Run, s Settings, now time.Time) []Run {
	overtaken := d.overtaken(runs, s, now)
	var waiting []Run
	var active *Run
	for i, r := range runs {
		switch r.State {
		case Active, Ending:
			if active == nil || active.State == Ending {
				active = &runs[i]
			}
		case Waiting:
			if !overtaken[r.Name] {
				waiting = append(waiting, r)
			}
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if active != nil {
		for _, r := range waiting {
			d.Waits = append(d.Waits, Wait{r, active.Name, "until run " + active.Name + " of the same branch has ended"})
		}
		return nil
	}
	first := 0
	if s.Policy != InTurn {
		first = len(waiting) - 1
	}
	for i, r := range waiting {
		if i != first {
			d.Waits = append(d.Waits, Wait{r, waiting[first].Name, "for run " + waiting[first].Name + " of the same branch, which goes first"})
		}
	}
	return waiting[first : first+1]
}

// overtaken cancels the runs for which a newer one stands, and returns their names.
func (d *Decision) overtaken(runs []Run, s Settings, now time.Time) map[string]bool {
	if s.Policy == InTurn {
		return nil
	}
	alive := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.State != Waiting && r.State != Active })
	if len(alive) < 2 {
		return nil
	}
	var settled []Run
	for _, r := range alive {
		left := r.Seen.Add(s.Settle).Sub(now)
		if left <= 0 {
			settled = append(settled, r)
		} else if d.Again == 0 || left < d.Again {
			d.Again = left
		}
	}
	names := map[string]bool{}
	for i, r := range settled {
		if i == len(settled)-1 || r.State == Active && s.Policy != Cancel {
			continue
		}
		names[r.Name] = true
		newest := settled[len(settled)-1].Name
		a := Action{Kind: CancelWaiting, Run: r, By: newest, Reason: "not started: run " + newest + " is of a newer push to the branch"}
		if r.State == Active {
			a.Kind, a.Reason = CancelStarted, "cancelled: run "+newest+" is of a newer push to the branch"
		}
		d.Actions = append(d.Actions, a)
	}
	return names
}
