package par

// Pool is a fixed set of workers.
type Pool struct{ n int }

// NewPool returns a pool of n workers (at least one), the caller of Run being
// one of them. Close ends the others.
func NewPool(n int) *Pool { return &Pool{n: max(n, 1)} }

// Workers returns the number of workers.
func (p *Pool) Workers() int { return p.n }

// Run calls f(worker, task) for each task in [0, tasks) and returns when all
// are done. worker, in [0, Workers()), names the scratch memory that the call may use.
func (p *Pool) Run(tasks int, f func(worker, task int)) {
	for i := range tasks {
		f(0, i)
	}
}

// Close ends the workers. The pool must be idle.
func (p *Pool) Close() {}
