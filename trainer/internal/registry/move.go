package registry

import (
	"context"
	"fmt"
)

// Values of Expect beside a version.
const (
	ExpectSeen = ""     // what the alias has when the call begins
	ExpectNone = "none" // the alias was never set
	ExpectAny  = "any"  // whatever it has: the last of several moves wins
)

// Move asks to move an alias.
type Move struct {
	Model, Alias string

	// Version is the version to move to. Rollback takes an empty one for the
	// version before.
	Version string

	// Expect is the version that the alias must have for the move to be still
	// wanted, or one of ExpectSeen, ExpectNone and ExpectAny. After a gate it
	// is the version that the candidate was compared with.
	Expect string

	Run     string   // who asks, for the history
	Reasons []string // why, for the history
}

// Moved says what became of a Move.
type Moved struct {
	Changed bool    // false: the alias had that version already
	From    string  // version before; the same as in Pointer if not Changed
	Pointer Pointer // where the alias is now
}

// Promote points an alias at a version. Promoting what is promoted changes
// nothing. Of several calls that expect the same version one succeeds; the
// others get ErrMoved and leave no trace.
//
// When the alias moved but its file could not be written, Promote returns
// Changed together with an error: Get is right already, and the same call
// again repairs the file.
func (r *Registry) Promote(ctx context.Context, m Move) (Moved, error) {
	if err := m.check(); err != nil {
		return Moved{}, err
	}
	if _, err := r.Verify(ctx, m.Model, m.Version); err != nil {
		return Moved{}, fmt.Errorf("promote %s %s: %w", m.Model, m.Version, err)
	}
	st, err := r.load(ctx, m.Model, m.Alias)
	if err != nil {
		return Moved{}, fmt.Errorf("promote %s to %s: %w", m.Model, m.Alias, err)
	}
	return r.move(ctx, m, st, func(now aliasState) Event {
		return Event{Kind: KindPromote, RollbackTo: now.last.Version}
	})
}

// Rollback points an alias at a version that it had before: at m.Version, or,
// if that is empty, at the one before the current one. Versions that were
// themselves rolled back are skipped, so that a second rollback goes further
// back and not forward to the bad one.
func (r *Registry) Rollback(ctx context.Context, m Move) (Moved, error) {
	if err := m.checkNames(); err != nil {
		return Moved{}, err
	}
	fail := func(err error) (Moved, error) {
		return Moved{}, fmt.Errorf("roll back %s of %s: %w", m.Alias, m.Model, err)
	}
	st, err := r.load(ctx, m.Model, m.Alias)
	if err != nil {
		return fail(err)
	}
	events, err := r.readEvents(ctx, m.Model, 1, st.head)
	if err != nil {
		return fail(err)
	}
	if st.last.Seq == 0 {
		return fail(fmt.Errorf("%w: the alias was never set", ErrNoPrevious))
	}
	if m.Version == "" {
		if m.Version = st.last.RollbackTo; m.Version == "" {
			return fail(fmt.Errorf("%w: version %s is the first", ErrNoPrevious, st.last.Version))
		}
	}
	if err := m.check(); err != nil {
		return Moved{}, err
	}
	below, ok := rollbackTo(events, m.Alias, m.Version)
	if !ok {
		return fail(fmt.Errorf("%w: %s never had version %s: promote it instead", ErrNoPrevious, m.Alias, m.Version))
	}
	// It may have lain there for long.
	if _, err := r.Check(ctx, m.Model, m.Version); err != nil {
		return fail(err)
	}
	return r.move(ctx, m, st, func(aliasState) Event {
		return Event{Kind: KindRollback, RollbackTo: below}
	})
}

// rollbackTo plays the moves of an alias as a stack: a promotion puts its
// version on top, a rollback takes off what lies above its target. It returns
// what lies below version once that is on top, and whether the alias ever had
// the version.
func rollbackTo(events []Event, alias, version string) (below string, ok bool) {
	var stack []string
	back := func(to string) {
		for i := len(stack) - 1; i >= 0; i-- {
			if stack[i] == to {
				stack = stack[:i+1]
				return
			}
		}
		stack = append(stack, to) // it was taken off earlier, and is wanted again
	}
	for _, e := range events {
		switch {
		case !e.moves(alias):
			continue
		case e.Kind == KindRollback:
			back(e.Version)
		default:
			stack = append(stack, e.Version)
		}
		ok = ok || e.Version == version
	}
	back(version)
	if len(stack) > 1 {
		below = stack[len(stack)-2]
	}
	return below, ok
}

// move appends the event and lets the alias file follow.
func (r *Registry) move(ctx context.Context, m Move, st aliasState, event func(aliasState) Event) (Moved, error) {
	expect := m.Expect
	switch expect {
	case ExpectSeen:
		expect = st.last.Version
	case ExpectNone:
		expect = ""
	}
	e, changed, err := r.appendEvent(ctx, m.Model, st.head, func(news []Event) (Event, bool, error) {
		st.apply(m.Alias, news)
		if st.last.Version == m.Version {
			return Event{}, false, nil
		}
		if m.Expect != ExpectAny && st.last.Version != expect {
			return Event{}, false, fmt.Errorf("%s of %s: %w: expected %s, event %d set it to %s: compare with that and decide again",
				m.Alias, m.Model, ErrMoved, orNone(expect), st.last.Seq, orNone(st.last.Version))
		}
		e := event(st)
		e.Alias, e.Version, e.Previous, e.Run, e.Reasons = m.Alias, m.Version, st.last.Version, m.Run, m.Reasons
		return e, true, nil
	})
	if err != nil {
		return Moved{}, fmt.Errorf("move %s of %s to %s: %w", m.Alias, m.Model, m.Version, err)
	}
	out := Moved{Changed: changed, From: st.last.Version}
	if !changed {
		e = st.last
	}
	out.Pointer = pointerOf(e)
	if err := r.point(ctx, e); err != nil {
		return out, fmt.Errorf("%s of %s is %s by event %d, but its file is behind: repeat to repair it: %w", m.Alias, m.Model, m.Version, e.Seq, err)
	}
	return out, nil
}

func orNone(version string) string {
	if version == "" {
		return "no version"
	}
	return version
}

func (m Move) checkNames() error {
	if err := checkAlias(m.Model, m.Alias); err != nil {
		return err
	}
	switch m.Expect {
	case ExpectSeen, ExpectNone, ExpectAny:
		return nil
	}
	if !isDigest(m.Expect) {
		return fmt.Errorf("expected version %.80q: must be a version, %q or %q", m.Expect, ExpectNone, ExpectAny)
	}
	return nil
}

func (m Move) check() error {
	if err := m.checkNames(); err != nil {
		return err
	}
	return checkVersion(m.Version)
}
