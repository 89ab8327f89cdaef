package queue

import (
	"cmp"
	"slices"
	"time"
)

// Order sorts the runs of one branch as they were pushed.
//
// A creation time has whole seconds, and deliveries overtake one another. So a run
// whose push began where another's ended comes after that one, however late the other
// was created; that one is then as old as the first run that follows from it. Between
// runs that are not so related the time decides, then the name. Commits that were
// pushed, taken back and pushed again follow from each other in a circle: there the
// time decides alone.
func Order(runs []Run) []Run {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	next, missing := links(runs)
	age := ages(runs, next)
	sorted := make([]Run, 0, len(runs))
	placed := make([]bool, len(runs))
	for range runs {
		best := -1
		for i := range runs {
			// Runs are sorted by time already: the first of the same age stands.
			if !placed[i] && missing[i] == 0 && (best < 0 || age[i].Before(age[best])) {
				best = i
			}
		}
		placed[best] = true
		sorted = append(sorted, runs[best])
		for _, i := range next[best] {
			missing[i]--
		}
	}
	return sorted
}

// links returns, for each run, those that follow from it, and how many each follows
// from. There are no circles in it.
func links(runs []Run) (next [][]int, missing []int) {
	ofCommit := map[string][]int{}
	var edges [][2]string
	for i, r := range runs {
		ofCommit[r.Commit] = append(ofCommit[r.Commit], i)
		edges = append(edges, [2]string{r.Before, r.Commit})
	}
	circle := circles(edges)
	next, missing = make([][]int, len(runs)), make([]int, len(runs))
	for i, r := range runs {
		if r.Before == "" || circle[r.Before] != 0 && circle[r.Before] == circle[r.Commit] {
			continue
		}
		for _, j := range ofCommit[r.Before] {
			next[j] = append(next[j], i)
			missing[i]++
		}
	}
	return next, missing
}

// circles numbers commits so that two have the same number when each follows from the
// other (Tarjan's strongly connected components).
func circles(edges [][2]string) map[string]int {
	follows := map[string][]string{}
	for _, e := range edges {
		follows[e[0]] = append(follows[e[0]], e[1])
	}
	var (
		stack                 []string
		index, low, component = map[string]int{}, map[string]int{}, map[string]int{}
		visit                 func(string)
	)
	visit = func(c string) {
		index[c] = len(index) + 1
		low[c] = index[c]
		stack = append(stack, c)
		for _, n := range follows[c] {
			if index[n] == 0 {
				visit(n)
				low[c] = min(low[c], low[n])
			} else if component[n] == 0 {
				low[c] = min(low[c], index[n])
			}
		}
		if low[c] != index[c] {
			return
		}
		for {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			component[n] = index[c]
			if n == c {
				return
			}
		}
	}
	for _, e := range edges {
		if index[e[0]] == 0 {
			visit(e[0])
		}
	}
	return component
}

// ages gives each run the time of the earliest run that follows from it, if that is
// earlier than its own: its push cannot have been later.
func ages(runs []Run, next [][]int) []time.Time {
	age, known := make([]time.Time, len(runs)), make([]bool, len(runs))
	var of func(int) time.Time
	of = func(i int) time.Time {
		if !known[i] {
			age[i] = runs[i].Created
			for _, j := range next[i] {
				if t := of(j); t.Before(age[i]) {
					age[i] = t
				}
			}
			known[i] = true
		}
		return age[i]
	}
	for i := range runs {
		of(i)
	}
	return age
}
