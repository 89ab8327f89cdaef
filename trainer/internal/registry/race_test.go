package registry

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

// openers return a function that opens a registry the way another process
// would.
type opener func(t *testing.T) (*Registry, store.Store)

func fileOpener(t *testing.T) opener {
	dir := t.TempDir()
	return func(t *testing.T) (*Registry, store.Store) {
		r, s := openDir(t, dir)
		r.now = fixed // clock is not for several goroutines of one registry
		return r, s
	}
}

func TestConcurrentPromotes(t *testing.T) {
	t.Parallel()
	testConcurrentPromotes(t, fileOpener(t), 100)
}

// testConcurrentPromotes lets n processes promote n models at once, three
// times: where all expect the same state, one may win; where each replaces
// what it sees, some may; where the last wins, all do.
func testConcurrentPromotes(t *testing.T, open opener, n int) {
	r, s := open(t)
	versions := make([]string, n)
	for i := range versions {
		versions[i] = add(t, r, fmt.Sprintf("weights %d", i))
	}
	before := 0
	for _, tc := range []struct {
		expect   string
		min, max int
	}{
		{ExpectNone, 1, 1},
		{ExpectSeen, 1, n},
		{ExpectAny, n - 1, n}, // one of them may be there already
	} {
		var (
			wg    sync.WaitGroup
			start = make(chan struct{})
			moved = make([]Moved, n)
			errs  = make([]error, n)
		)
		for i := range n {
			r, _ := open(t)
			wg.Go(func() {
				<-start
				moved[i], errs[i] = r.Promote(t.Context(), Move{
					Model: model, Alias: "production", Version: versions[i], Expect: tc.expect, Run: fmt.Sprint("run-", i)})
			})
		}
		close(start)
		wg.Wait()

		winners := map[int64]int{}
		for i := range n {
			switch {
			case errs[i] == nil && moved[i].Changed:
				winners[moved[i].Pointer.Seq] = i
			case errs[i] == nil && moved[i].From == versions[i]: // was there before
			case !errors.Is(errs[i], ErrMoved):
				t.Errorf("expect %q, promote %d: %+v, %v", tc.expect, i, moved[i], errs[i])
			}
		}
		if len(winners) < tc.min || len(winners) > tc.max {
			t.Errorf("expect %q: %d winners, want %d to %d", tc.expect, len(winners), tc.min, tc.max)
		}
		events := checkConsistent(t, r, s)
		if len(events)-before != len(winners) {
			t.Errorf("expect %q: %d winners, %d events", tc.expect, len(winners), len(events)-before)
		}
		for _, e := range events[before:] {
			if i, ok := winners[e.Seq]; !ok || versions[i] != e.Version || e.Run != fmt.Sprint("run-", i) {
				t.Errorf("event %+v is nobody's win", e)
			}
		}
		p, err := r.Get(t.Context(), model, "production")
		if last := events[len(events)-1]; err != nil || p.Version != last.Version || p.Seq != last.Seq {
			t.Errorf("production is %+v (%v), the last event %+v", p, err, last)
		}
		before = len(events)
	}
}

func TestConcurrentKinds(t *testing.T) {
	t.Parallel()
	open := fileOpener(t)
	r, s := open(t)
	for i := range 5 {
		promote(t, r, add(t, r, fmt.Sprint("v", i)))
	}
	var wg sync.WaitGroup
	for i := range 40 {
		r, _ := open(t)
		wg.Go(func() {
			var err error
			switch i % 4 {
			case 0:
				_, err = r.Promote(t.Context(), Move{Model: model, Alias: "candidate", Version: sha(fmt.Sprint("v", i%5)), Expect: ExpectAny})
			case 1:
				_, _, err = r.RecordBlocked(t.Context(), Blocked{Model: model, Alias: "production", Version: sha("bad"), Run: "run-1"})
			case 2:
				_, err = r.Rollback(t.Context(), Move{Model: model, Alias: "production", Version: sha("v1"), Expect: sha("v4")})
			case 3:
				_, err = r.Get(t.Context(), model, "production")
			}
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	blocked, rollbacks := 0, 0
	for _, e := range checkConsistent(t, r, s) {
		switch e.Kind {
		case KindBlocked:
			blocked++
		case KindRollback:
			rollbacks++
		}
	}
	if blocked != 1 || rollbacks != 1 {
		t.Errorf("%d blocked, %d rollbacks, want one of each", blocked, rollbacks)
	}
}
