package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// spin is how long a worker looks for work before it parks. Longer would steal
// the processor from whoever shares it; shorter would pay a wake-up, some
// microseconds, between one layer and the next.
const spin = 40 * time.Microsecond

// A round is published in one word, so that a late worker can never take a task
// of a round that it has not seen begin: round number, number of tasks, and the
// next task to hand out.
const (
	taskBits = 20
	taskMask = 1<<taskBits - 1
	maxTasks = taskMask - 1<<10 // leaves room for workers that find no task left
)

// Pool is a fixed set of workers.
type Pool struct {
	n     int
	word  atomic.Uint64
	done  atomic.Int64
	f     func(worker, task int)
	round uint64

	parked  []atomic.Bool
	wake    []chan struct{}
	waiting atomic.Bool
	joined  chan struct{}
	closed  atomic.Bool
}

// NewPool returns a pool of n workers (at least one), the caller of Run being
// one of them. Close ends the others.
func NewPool(n int) *Pool {
	n = max(n, 1)
	p := &Pool{n: n, parked: make([]atomic.Bool, n), wake: make([]chan struct{}, n), joined: make(chan struct{}, 1)}
	for w := 1; w < n; w++ {
		p.wake[w] = make(chan struct{}, 1)
		go p.work(w)
	}
	return p
}

// Workers returns the number of workers.
func (p *Pool) Workers() int { return p.n }

// Run calls f(worker, task) for each task in [0, tasks) and returns when all
// are done. worker, in [0, Workers()), names the scratch memory that the call
// may use. Tasks are handed out in order, to whoever is free. Run must not be
// called from f, nor twice at once.
func (p *Pool) Run(tasks int, f func(worker, task int)) {
	for tasks > maxTasks {
		p.runRound(maxTasks, f)
		rest, g := tasks-maxTasks, f
		tasks, f = rest, func(worker, task int) { g(worker, task+maxTasks) }
	}
	p.runRound(tasks, f)
}

func (p *Pool) runRound(tasks int, f func(worker, task int)) {
	if p.n == 1 || tasks <= 1 {
		for i := range tasks {
			f(0, i)
		}
		return
	}
	p.f = f
	p.done.Store(0)
	p.round++
	p.word.Store(p.round<<(2*taskBits) | uint64(tasks)<<taskBits)
	for w := 1; w < min(p.n, tasks); w++ {
		if p.parked[w].CompareAndSwap(true, false) {
			p.wake[w] <- struct{}{}
		}
	}
	p.drain(0)
	p.join(int64(tasks))
}

// drain does tasks of the present round until none is left.
func (p *Pool) drain(worker int) {
	for {
		word := p.word.Add(1)
		tasks, task := word>>taskBits&taskMask, word&taskMask-1
		if task >= tasks {
			return
		}
		// The round cannot end before this task does, so f is this round's.
		p.f(worker, int(task))
		if p.done.Add(1) == int64(tasks) && p.waiting.CompareAndSwap(true, false) {
			p.joined <- struct{}{}
		}
	}
}

// join waits for tasks that other workers still run.
func (p *Pool) join(tasks int64) {
	if p.spinUntil(func() bool { return p.done.Load() == tasks }) {
		return
	}
	p.waiting.Store(true)
	if p.done.Load() == tasks && p.waiting.CompareAndSwap(true, false) {
		return
	}
	<-p.joined
}

func (p *Pool) available() bool {
	word := p.word.Load()
	return word&taskMask < word>>taskBits&taskMask
}

func (p *Pool) work(worker int) {
	ready := func() bool { return p.available() || p.closed.Load() }
	for !p.closed.Load() {
		if !p.spinUntil(ready) {
			p.parked[worker].Store(true)
			if !ready() || !p.parked[worker].CompareAndSwap(true, false) {
				<-p.wake[worker]
			}
		}
		p.drain(worker)
	}
}

// spinUntil polls for at most spin and reports whether ok came true.
func (p *Pool) spinUntil(ok func() bool) bool {
	for range 200 {
		if ok() {
			return true
		}
	}
	for begin := time.Now(); time.Since(begin) < spin; {
		for range 100 {
			if ok() {
				return true
			}
		}
	}
	runtime.Gosched()
	return ok()
}

// Close ends the workers. The pool must be idle, and may not be used again.
func (p *Pool) Close() {
	p.closed.Store(true)
	for w := 1; w < p.n; w++ {
		if p.parked[w].CompareAndSwap(true, false) {
			p.wake[w] <- struct{}{}
		}
	}
}
