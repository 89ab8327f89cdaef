package par

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestEveryTaskRunsOnce(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 3, 8} {
		p := NewPool(workers)
		for _, tasks := range []int{0, 1, 2, 7, 100, 1000} {
			for range 50 {
				counts := make([]atomic.Int32, tasks)
				p.Run(tasks, func(worker, task int) {
					if worker < 0 || worker >= p.Workers() {
						t.Errorf("worker %d of %d", worker, p.Workers())
					}
					counts[task].Add(1)
				})
				for i := range counts {
					if n := counts[i].Load(); n != 1 {
						t.Fatalf("%d workers, %d tasks: task %d ran %d times", workers, tasks, i, n)
					}
				}
			}
		}
		p.Close()
	}
}

func TestWritesOfTasksAreSeenAfterRun(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	plain := make([]int, 64) // not atomic: the race detector judges
	for round := range 2000 {
		p.Run(len(plain), func(_, task int) { plain[task] += task + round })
		plain[0]++
	}
}

func TestParkedWorkersWake(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for range 5 {
		// Wait until the second worker has parked, then give both a task that
		// ends only when both have begun.
		for deadline := time.Now().Add(10 * time.Second); !p.parked[1].Load(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("worker never parked")
			}
		}
		var begun atomic.Int32
		p.Run(2, func(_, _ int) {
			begun.Add(1)
			for begun.Load() < 2 {
				time.Sleep(time.Microsecond)
			}
		})
	}
}

func TestCallerParksWhileALongTaskRuns(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var other atomic.Int32
	p.Run(2, func(worker, _ int) {
		if worker == 0 {
			for other.Load() == 0 {
				time.Sleep(time.Microsecond)
			}
			return
		}
		other.Store(1)
		for !p.waiting.Load() {
			time.Sleep(time.Millisecond)
		}
	})
}

func TestMoreTasksThanARoundHolds(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var sum atomic.Int64
	const tasks = maxTasks + 5
	p.Run(tasks, func(_, task int) { sum.Add(int64(task)) })
	if want := int64(tasks) * (tasks - 1) / 2; sum.Load() != want {
		t.Errorf("tasks sum to %d, want %d", sum.Load(), want)
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	f := func(_, _ int) {}
	if n := testing.AllocsPerRun(100, func() { p.Run(16, f) }); n != 0 {
		t.Errorf("Run allocates %v times", n)
	}
}
