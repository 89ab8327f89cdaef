package stage

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/registry"
)

// RollbackOptions say what Rollback does.
type RollbackOptions struct {
	Target
	To       string   // what to go back to: see ResolveVersion; "" goes to the version before
	Expect   string   // version that the alias must have now; "" takes what it has
	Reasons  []string // for the history
	RunID    string   // for the history, may be empty
	Now      func() time.Time
	Announce Announcer // may be nil
	Out      io.Writer
}

// Rollback moves an alias back to a version that it had before. The history
// keeps both moves.
func Rollback(ctx context.Context, o RollbackOptions) (*Promotion, error) {
	if o.Store == nil {
		return nil, exitcode.Errorf(exitcode.Usage, "rollback: no store: set --store")
	}
	if err := o.Target.validate(); err != nil {
		return nil, coded("rollback", err)
	}
	r := registry.New(o.Store, registry.Options{Now: o.Now})
	version := ""
	if o.To != "" {
		var err error
		if version, err = ResolveVersion(ctx, r, o.Name, o.To); err != nil {
			return nil, fromStore("rollback", err)
		}
	}
	moved, err := r.Rollback(ctx, registry.Move{Model: o.Name, Alias: o.Alias, Version: version, Expect: o.Expect, Run: o.RunID, Reasons: o.Reasons})
	if err != nil {
		return nil, fromStore("rollback", err)
	}
	p := &Promotion{
		Name: o.Name, Alias: o.Alias, Version: moved.Pointer.Version, Location: r.Location(o.Name, moved.Pointer.Version),
		From: moved.From, Changed: moved.Changed, Seq: moved.Pointer.Seq, RunID: o.RunID,
	}
	if o.Announce != nil {
		if err := o.Announce.Announce(ctx, *p); err != nil {
			return p, exitcode.Errorf(exitcode.IO, "rollback: %s is %s, but the model server was not told: roll back to it again: %w", o.Alias, gate.Short(p.Version), err)
		}
	}
	line := fmt.Sprintf("rolled back to %s, before %s", gate.Short(p.Version), orNothing(gate.Short(p.From)))
	if !p.Changed {
		line = "is " + gate.Short(p.Version) + " already"
	}
	_, err = fmt.Fprintf(o.Out, "%s of %s %s\n%s\n", o.Alias, o.Name, line, p.Location)
	return p, err
}
