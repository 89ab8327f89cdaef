package corpus

import (
	"context"
	"sync"
)

// Ordered runs a pipeline of three parts: produce emits items, work maps them on
// so many goroutines at once, and sink receives the results in the order of the
// items, whatever the number of workers. produce runs on one goroutine and sink
// on the caller's. About two items for each worker are in flight. The first
// error of any part, in the order of the items, ends the run and is returned; a
// cancelled context does too.
func Ordered[T, U any](ctx context.Context, workers int,
	produce func(ctx context.Context, emit func(T) error) error,
	work func(worker int, item T) (U, error),
	sink func(U) error,
) error {
	type result struct {
		value U
		err   error
	}
	type job struct {
		item T
		out  chan result
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel(context.Canceled)

	workers = max(1, workers)
	jobs := make(chan job, workers)
	queue := make(chan chan result, 2*workers)
	emit := func(item T) error {
		out := make(chan result, 1)
		select {
		case queue <- out:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case jobs <- job{item, out}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	wait.Add(1 + workers)
	go func() {
		defer wait.Done()
		defer close(queue)
		defer close(jobs)
		if err := produce(ctx, emit); err != nil {
			last := make(chan result, 1)
			last <- result{err: err}
			select {
			case queue <- last:
			case <-ctx.Done():
			}
		}
	}()
	for w := range workers {
		go func() {
			defer wait.Done()
			for j := range jobs {
				v, err := work(w, j.item)
				j.out <- result{v, err}
			}
		}()
	}
	for {
		select {
		case out, ok := <-queue:
			if !ok {
				// produce gave up quietly when it saw the context end.
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return nil
			}
			select {
			case r := <-out:
				if r.err != nil {
					return r.err
				}
				if err := sink(r.value); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
