package prune

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ago is a run of a group that ended some hours ago.
func ago(name, group string, hours int) Run {
	return Run{Name: name, Group: group, Done: true, Ended: now.Add(-time.Duration(hours) * time.Hour), Created: now.Add(-1000 * time.Hour)}
}

func TestChoose(t *testing.T) {
	running := Run{Name: "running", Group: "main", Created: now}
	runs := []Run{running, ago("c", "main", 3), ago("a", "main", 1), ago("d", "main", 40), ago("b", "main", 2), ago("x", "other", 50)}
	// Created in the other order than they ended, the second and third at the same time.
	tie := []Run{ago("old", "g", 5), ago("p", "g", 2), ago("q", "g", 2)}
	tie[0].Created = now
	for name, c := range map[string]struct {
		runs   []Run
		limits Limits
		want   string
	}{
		"count alone":                   {runs, Limits{Keep: 2}, "d:count c:count"},
		"age alone":                     {runs, Limits{OlderThan: 30 * time.Hour}, "x:age d:age"},
		"either":                        {runs, Limits{Keep: 3, OlderThan: 30 * time.Hour}, "x:age d:count"},
		"age within what count keeps":   {runs, Limits{Keep: 9, OlderThan: 2 * time.Hour}, "x:age d:age c:age"},
		"an age is not yet older":       {[]Run{ago("a", "g", 2)}, Limits{OlderThan: 2 * time.Hour}, ""},
		"both off":                      {runs, Limits{}, ""},
		"enough of all":                 {runs, Limits{Keep: 4, OlderThan: 100 * time.Hour}, ""},
		"the one that runs counts not":  {[]Run{running, ago("a", "main", 1)}, Limits{Keep: 1}, ""},
		"by the end, not the beginning": {tie, Limits{Keep: 2}, "old:count"},
		"ties by name":                  {tie[1:], Limits{Keep: 1}, "p:count"},
		"no runs":                       {nil, Limits{Keep: 1}, ""},
		"the clock of the server is ahead of ours": {[]Run{ago("a", "g", -1)}, Limits{OlderThan: time.Hour}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Choose(c.runs, c.limits, now) {
				got = append(got, c.Name+":"+string(c.Reason))
			}
			if d := gocmp.Diff(c.want, strings.Join(got, " ")); d != "" {
				t.Error(d)
			}
		})
	}
}

// What must hold for any runs, told another way than Choose does it.
func TestChooseProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		runs := make([]Run, r.IntN(30))
		for i := range runs {
			runs[i] = ago(fmt.Sprint("r", i), fmt.Sprint("g", r.IntN(3)), r.IntN(20))
			runs[i].Created = now.Add(-time.Duration(20+r.IntN(3)) * time.Hour)
			runs[i].Done = r.IntN(4) > 0
		}
		l := Limits{Keep: r.IntN(6), OlderThan: time.Duration(r.IntN(15)) * time.Hour}
		before := slices.Clone(runs)
		chosen := map[string]Reason{}
		for _, c := range Choose(runs, l, now) {
			chosen[c.Name] = c.Reason
		}
		if !slices.Equal(runs, before) {
			t.Fatal("the runs were changed")
		}
		for _, a := range runs {
			newer := 0
			for _, b := range runs {
				later := b.Ended.After(a.Ended) || b.Ended.Equal(a.Ended) && (b.Created.After(a.Created) || b.Created.Equal(a.Created) && b.Name > a.Name)
				if b.Done && b.Group == a.Group && later {
					newer++
				}
			}
			want := a.Done && (l.Keep > 0 && newer >= l.Keep || l.OlderThan > 0 && now.Sub(a.Ended) > l.OlderThan)
			if _, got := chosen[a.Name]; got != want {
				t.Fatalf("%+v with %+v among %+v: chosen %v", a, l, runs, got)
			}
		}
		// In any order the same, and a second time nothing.
		shuffled := slices.Clone(runs)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		byName := func(a, b Choice) int { return cmp.Compare(a.Name, b.Name) }
		a, b := Choose(runs, l, now), Choose(shuffled, l, now)
		slices.SortFunc(a, byName)
		slices.SortFunc(b, byName)
		if !slices.Equal(a, b) {
			t.Fatalf("the order matters: %+v and %+v", a, b)
		}
		left := slices.DeleteFunc(runs, func(r Run) bool { return chosen[r.Name] != "" })
		if again := Choose(left, l, now); len(again) > 0 {
			t.Fatalf("a second time chooses %+v", again)
		}
	}
}

// pipelineRun is a run that ended some hours ago; negative hours: it runs.
func pipelineRun(name string, hours int, change ...func(*pipelinev1.PipelineRun)) *pipelinev1.PipelineRun {
	pr := &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7" + name,
			CreationTimestamp: metav1.NewTime(now.Add(-100 * time.Hour)),
			Labels: map[string]string{
				"trainyard.dev/trigger": "push", "trainyard.dev/forge": "github",
				"trainyard.dev/commit": strings.Repeat("a", 40), "tekton.dev/pipeline": "labelled",
			},
			Annotations: map[string]string{"trainyard.dev/repository": "o/r", "trainyard.dev/branch": "main"},
		},
		Spec: pipelinev1.PipelineRunSpec{PipelineRef: &pipelinev1.PipelineRef{Name: "train"}},
	}
	status := corev1.ConditionUnknown
	if hours >= 0 {
		status = corev1.ConditionTrue
		ended := metav1.NewTime(now.Add(-time.Duration(hours) * time.Hour))
		pr.Status.CompletionTime = &ended
	}
	pr.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: status})
	for _, c := range change {
		c(pr)
	}
	return pr
}

func manual(pr *pipelinev1.PipelineRun) {
	delete(pr.Labels, "trainyard.dev/trigger")
}

func TestGroups(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pipelinev1.PipelineRun)
		want   string
	}{
		"pushed":        {func(*pipelinev1.PipelineRun) {}, "github o/r main"},
		"other branch":  {func(p *pipelinev1.PipelineRun) { p.Annotations["trainyard.dev/branch"] = "dev" }, "github o/r dev"},
		"other forge":   {func(p *pipelinev1.PipelineRun) { p.Labels["trainyard.dev/forge"] = "gitlab" }, "gitlab o/r main"},
		"pushed where?": {func(p *pipelinev1.PipelineRun) { delete(p.Annotations, "trainyard.dev/branch") }, "pipeline train"},
		"by hand":       {manual, "pipeline train"},
		"of a bundle": {func(p *pipelinev1.PipelineRun) {
			manual(p)
			p.Spec.PipelineRef = &pipelinev1.PipelineRef{ResolverRef: pipelinev1.ResolverRef{Resolver: "bundles"}}
		}, "pipeline labelled"},
		// Tekton's label is the run's own name then.
		"with the pipeline inside": {func(p *pipelinev1.PipelineRun) {
			manual(p)
			p.Spec.PipelineRef, p.Spec.PipelineSpec = nil, &pipelinev1.PipelineSpec{}
		}, "no named pipeline"},
	} {
		if got := Read(pipelineRun("a", 1, c.change)).Group; got != c.want {
			t.Errorf("%s: group %q, want %q", name, got, c.want)
		}
	}
}

func TestWhenARunEnded(t *testing.T) {
	hours := func(h int) time.Time { return now.Add(-time.Duration(h) * time.Hour) }
	noCompletion := func(p *pipelinev1.PipelineRun) { p.Status.CompletionTime = nil }
	transition := func(p *pipelinev1.PipelineRun) {
		p.Status.CompletionTime = nil
		p.Status.Conditions[0].LastTransitionTime = apis.VolatileTime{Inner: metav1.NewTime(hours(3))}
	}
	never := func(p *pipelinev1.PipelineRun) {
		p.Status.CompletionTime, p.Status.Conditions = nil, nil
		p.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
	}
	going := func(p *pipelinev1.PipelineRun) { d := metav1.NewTime(now); p.DeletionTimestamp = &d }
	for name, c := range map[string]struct {
		run   *pipelinev1.PipelineRun
		done  bool
		ended time.Time
	}{
		"completed":            {pipelineRun("a", 2), true, hours(2)},
		"known by its state":   {pipelineRun("a", 2, transition), true, hours(3)},
		"known by nothing":     {pipelineRun("a", 2, noCompletion, func(p *pipelinev1.PipelineRun) { p.Status.Conditions[0].LastTransitionTime = apis.VolatileTime{} }), true, hours(100)},
		"running":              {pipelineRun("a", -1), false, time.Time{}},
		"waiting in the queue": {pipelineRun("a", 2, never), false, time.Time{}},
		"being deleted":        {pipelineRun("a", 2, going), false, time.Time{}},
	} {
		got := Read(c.run)
		if got.Done != c.done || !got.Ended.Equal(c.ended) {
			t.Errorf("%s: done %v, ended %v; want %v, %v", name, got.Done, got.Ended, c.done, c.ended)
		}
	}
}
