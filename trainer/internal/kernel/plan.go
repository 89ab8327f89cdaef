package kernel

// plan cuts a product into tasks: chunks of rows of A by groups of panels of B.
type plan struct {
	chunk, chunks int
	all, groups   int // panels in all, and groups of them
}

// panels returns the panels [first, last) of a group.
func (p plan) panels(group int) (first, last int) {
	return group * p.all / p.groups, (group + 1) * p.all / p.groups
}

// Costs in multiply-adds of one lane, measured roughly: of bringing an element into
// order and, last, of a task.
const (
	costStrip  = 3.0   // A^T into strips
	costInRead = 0.5   // A read in place, from the second-level cache
	costPanel  = 2.5   // B into a panel
	costTurned = 6.0   // B^T into a panel
	costTask   = 20000 // to hand out a task and begin with cold caches
)

// plan chooses the cut whose slowest worker has least to do: packing is done
// again for every task that needs the same part, but few large tasks leave
// workers idle.
func (s *Set) plan(p *Product, workers int) plan {
	limit, costA, costB := chunkRows, costInRead, costPanel
	if p.TransA {
		limit, costA = stripRows, costStrip
	}
	if p.TransB {
		costB = costTurned
	}
	all := ceil(p.N, s.width)
	best, bestCost := plan{}, 0.0
	fewest := ceil(p.M, limit)
	for _, chunks := range [...]int{fewest, fewest + 1, 2 * fewest, workers * fewest} {
		chunk := ceil(ceil(p.M, chunks), s.rows) * s.rows
		if chunk > limit {
			continue
		}
		chunks = ceil(p.M, chunk)
		for groups := 1; groups <= min(all, 4*workers); groups++ {
			tasks := chunks * groups
			width := float64(ceil(all, groups) * s.width)
			rows, depth := float64(chunk), float64(p.K)
			task := depth*(rows*width+rows*costA+width*costB) + costTask
			// The last chunk is often shorter; on average a task is this large:
			total := depth*(float64(p.M*p.N)+float64(p.M*groups)*costA+float64(p.N*chunks)*costB) + float64(tasks)*costTask
			cost := max(total/float64(workers), float64(ceil(tasks, workers))*task*0.5+total/float64(workers)*0.5)
			if best.groups == 0 || cost < bestCost {
				best, bestCost = plan{chunk: chunk, chunks: chunks, all: all, groups: groups}, cost
			}
		}
	}
	return best
}
