package train

import (
	"context"
	"fmt"
	"slices"
)

// Hook is called with the state of the run. An error ends the run.
type Hook func(ctx context.Context, s *State) error

// Priority orders the hooks of one event: lower runs first; equal ones run in
// the order in which they were added.
type Priority int

// The order that the hooks of this project rely on: a policy may stop the run
// before a checkpoint records that it did, and observers come last so that they
// tell what was saved.
const (
	PriorityPolicy     Priority = 10
	PriorityHistory    Priority = 20
	PriorityCheckpoint Priority = 30
	PriorityProgress   Priority = 40
)

type event int

const (
	onStart event = iota
	onStep
	onEval
	onEnd
	events
)

type namedHook struct {
	name     string
	priority Priority
	call     Hook
}

type hooks [events][]namedHook

func (h *hooks) add(e event, name string, p Priority, call Hook) {
	h[e] = append(h[e], namedHook{name, p, call})
	slices.SortStableFunc(h[e], func(a, b namedHook) int { return int(a.priority - b.priority) })
}

func (h *hooks) run(ctx context.Context, e event, s *State) error {
	for _, k := range h[e] {
		if err := k.call(ctx, s); err != nil {
			return fmt.Errorf("%s at step %d: %w", k.name, s.Step, err)
		}
	}
	return nil
}

// OnStart adds a hook that runs once before the first step of this process.
func (l *Loop) OnStart(name string, p Priority, h Hook) { l.hooks.add(onStart, name, p, h) }

// OnStep adds a hook that runs after each update, before its evaluation.
func (l *Loop) OnStep(name string, p Priority, h Hook) { l.hooks.add(onStep, name, p, h) }

// OnEval adds a hook that runs after each evaluation.
func (l *Loop) OnEval(name string, p Priority, h Hook) { l.hooks.add(onEval, name, p, h) }

// OnEnd adds a hook that runs when the loop ends, whether it reached its last
// step, was stopped, or was interrupted; not when it failed.
func (l *Loop) OnEnd(name string, p Priority, h Hook) { l.hooks.add(onEnd, name, p, h) }
