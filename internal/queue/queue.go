package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/trainyard/trainyard/internal/pushrun"
)

const (
	// resync is how long nothing may happen before the queue looks all the same.
	resync = time.Minute
	// pause between two looks: what comes at once is judged at once.
	pause = 300 * time.Millisecond
	// Between looks that failed.
	firstBackoff, lastBackoff = time.Second, 30 * time.Second
	// requestTimeout ends a request whose answer does not come.
	requestTimeout = 30 * time.Second
	// linkAge is how much older than all that is active and waiting a deleted run may
	// be and yet tell something about their order.
	linkAge = time.Hour
	// pageSize keeps a namespace with many runs out of memory: a run with its status
	// is large, and little of it is kept.
	pageSize = 50
)

// Config is what a queue needs of its surroundings.
type Config struct {
	Namespace string
	// Runs must not end a request by itself (rest.Config.Timeout): a watch is one.
	Runs     tektonclient.PipelineRunInterface
	Events   coreclient.EventInterface
	Settings Settings
	Log      *slog.Logger
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time
}

// Queue lets the runs of one namespace in.
type Queue struct {
	Config
	runs  map[types.UID]*memory
	pulse pulse
}

// New returns a queue that has not looked yet.
func New(c Config) *Queue { return &Queue{Config: c, runs: map[types.UID]*memory{}} }

// memory is what the queue remembers of a run: nothing that must not be lost.
type memory struct {
	seen  time.Time
	told  map[string]bool // events that were written
	known Run             // as it was listed last
}

// Run works until the context ends, and returns nil then. Whatever fails is tried
// again.
func (q *Queue) Run(ctx context.Context) error {
	q.Log.Info("the queue is open", "namespace", q.Namespace, "policy", q.Settings.Policy, "max-running", q.Settings.MaxRunning)
	var failures int
	for ctx.Err() == nil {
		q.beat()
		err := q.turn(ctx)
		wait := pause
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			q.pulse.works.Store(false)
			wait = min(firstBackoff<<min(failures, 10), lastBackoff)
			failures++
			q.Log.Error("try again", "in", wait, "error", err)
		} else {
			failures = 0
		}
		select {
		case <-ctx.Done():
		case <-q.After(wait):
		}
	}
	q.Log.Info("the queue is closed", "namespace", q.Namespace)
	return nil
}

// turn looks once, does what is to be done, and waits until it is time to look again.
func (q *Queue) turn(ctx context.Context) error {
	runs, version, err := q.list(ctx)
	if err != nil {
		return fmt.Errorf("list the runs of pushes in namespace %s: %w", q.Namespace, err)
	}
	d := Decide(runs, q.Settings, q.Now())
	overtaken, err := q.apply(ctx, d)
	if err != nil {
		return err
	}
	q.pulse.works.Store(true)
	if overtaken {
		return nil
	}
	limit := resync
	if d.Again > 0 {
		limit = min(limit, d.Again)
	}
	if err := q.watch(ctx, version, limit); err != nil {
		return fmt.Errorf("watch the runs of pushes in namespace %s: %w", q.Namespace, err)
	}
	return nil
}

// list reads the runs from the API server, all of one moment, and returns which.
func (q *Queue) list(ctx context.Context) (runs []Run, version string, err error) {
	remembered := map[types.UID]*memory{}
	options := metav1.ListOptions{LabelSelector: pushrun.Selector, Limit: pageSize}
	for {
		page, err := q.page(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			r, pushed := Read(&page.Items[i])
			if !pushed {
				continue
			}
			m := q.runs[r.UID]
			if m == nil {
				m = &memory{seen: q.Now(), told: map[string]bool{}}
			}
			r.Seen = m.seen
			m.known = r
			remembered[r.UID] = m
			runs = append(runs, r)
		}
		version, options.Continue = page.ResourceVersion, page.Continue
		if options.Continue == "" {
			runs = append(runs, q.gone(runs, remembered)...)
			q.runs = remembered
			return runs, version, nil
		}
	}
}

// gone returns the runs that were deleted while their branch is busy, and keeps them
// in mind: they tell what followed from what. A restart forgets them, and then the
// times must do.
func (q *Queue) gone(there []Run, remembered map[types.UID]*memory) []Run {
	since := map[Group]time.Time{}
	for _, r := range there {
		if t, busy := since[r.Group]; r.State != Done && (!busy || r.Created.Before(t)) {
			since[r.Group] = r.Created
		}
	}
	var runs []Run
	for uid, m := range q.runs {
		t, busy := since[m.known.Group]
		if remembered[uid] != nil || !busy || m.known.Created.Before(t.Add(-linkAge)) {
			continue
		}
		m.known.State = Done
		remembered[uid] = m
		runs = append(runs, m.known)
	}
	return runs
}

func (q *Queue) page(ctx context.Context, options metav1.ListOptions) (*pipelinev1.PipelineRunList, error) {
	q.beat()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return q.Runs.List(ctx, options)
}

// watch waits until a run changes in a way that matters to a queue, or until the time
// is up. It only wakes: what is done is judged by a list.
func (q *Queue) watch(ctx context.Context, version string, limit time.Duration) error {
	q.beat()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The server ends the watch by itself, should our end of it not be heard.
	seconds := int64((limit + requestTimeout) / time.Second)
	w, err := q.Runs.Watch(ctx, metav1.ListOptions{LabelSelector: pushrun.Selector, ResourceVersion: version, TimeoutSeconds: &seconds})
	if err != nil {
		return unlessExpired(err)
	}
	defer w.Stop()
	up := q.After(limit)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-up:
			return nil
		case e, open := <-w.ResultChan():
			q.beat()
			switch {
			case !open:
				return nil
			case e.Type == watch.Error:
				return unlessExpired(apierrors.FromObject(e.Object))
			case q.matters(e):
				return nil
			}
		}
	}
}

// unlessExpired leaves out that the server does not go back to the version any more:
// the next list has a newer one.
func unlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// matters says whether an event is more than progress of a run that is known.
func (q *Queue) matters(e watch.Event) bool {
	pr, ok := e.Object.(*pipelinev1.PipelineRun)
	if !ok || e.Type != watch.Modified {
		return true
	}
	now, pushed := Read(pr)
	m := q.runs[pr.UID]
	if !pushed || m == nil {
		return true
	}
	return now.State != m.known.State || now.Group != m.known.Group || now.Commit != m.known.Commit || now.Before != m.known.Before || (now.Err == nil) != (m.known.Err == nil)
}

// pulse tells others how the queue is.
type pulse struct {
	last  atomic.Int64 // when something moved, in Unix nanoseconds
	works atomic.Bool  // the last turn did all that was to be done
}

func (q *Queue) beat() { q.pulse.last.Store(q.Now().UnixNano()) }
