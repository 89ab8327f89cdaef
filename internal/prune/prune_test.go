package prune

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// claim is a claim that runs own.
func claim(name, size string, owners ...string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	for _, o := range owners {
		c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{Kind: "PipelineRun", Name: o, UID: types.UID("uid-" + o)})
	}
	return c
}

func mounting(claim, ofRun string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-of-" + ofRun, Labels: map[string]string{"tekton.dev/pipelineRun": ofRun}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// bind lets a run use a claim by its name.
func bind(claim string) func(*pipelinev1.PipelineRun) {
	return func(pr *pipelinev1.PipelineRun) {
		pr.Spec.Workspaces = []pipelinev1.WorkspaceBinding{{Name: "shared", PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
	}
}

type bench struct {
	*Pruner
	tekton *tektonfake.Clientset
}

func newBench(core []runtime.Object, runs ...runtime.Object) *bench {
	b := &bench{tekton: tektonfake.NewSimpleClientset(runs...)}
	b.Pruner = &Pruner{Kube: fake.NewClientset(core...), Tekton: b.tekton, Now: func() time.Time { return now }}
	return b
}

// names of the runs that are there.
func (b *bench) names(t *testing.T) string {
	t.Helper()
	list, err := b.tekton.TektonV1().PipelineRuns("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pr := range list.Items {
		names = append(names, pr.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// refuse lets the deletion of a run fail.
func (b *bench) refuse(run string, err error) *bench {
	b.tekton.PrependReactor("delete", "pipelineruns", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.DeleteAction).GetName() == run, nil, err
	})
	return b
}

var resourceOfRuns = schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}

func keepOne() Options {
	return Options{Limits: Limits{Keep: 1}, Selector: "trainyard.dev/trigger=push"}
}

func left(r *Report) string {
	var out []string
	for _, l := range r.Left {
		out = append(out, l.Name+": "+l.Why)
	}
	return strings.Join(out, "; ")
}

func TestPruneDeletesAndTellsWhatIsFreed(t *testing.T) {
	bound := claim("pvc-old", "1Gi", "old")
	bound.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	b := newBench(
		[]runtime.Object{
			bound, claim("pvc-old-2", "512Mi", "old"), claim("pvc-new", "1Gi", "new"),
			claim("trainyard", "20Gi"),            // of nobody: shared
			claim("pvc-two", "4Gi", "old", "new"), // stays as long as one owner does
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pvc-other", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", UID: "uid-old"}}}},
			mounting("pvc-old", "old", corev1.PodRunning), // its own, such as the affinity assistant's
			mounting("trainyard", "x", corev1.PodRunning),
		},
		pipelineRun("old", 5, bind("trainyard")), pipelineRun("new", 2), pipelineRun("running", -1), pipelineRun("by-hand", 99, manual))
	r, err := b.Prune(t.Context(), "ns", keepOne())
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	want := &Report{
		Namespace: "ns", Runs: 3, Left: []Left{}, Claims: 2, Freed: 2<<30 + 512<<20,
		Deleted: []Entry{{Name: "old", Group: "github o/r main", Ended: now.Add(-5 * time.Hour), Reason: TooMany, Claims: []Claim{{"pvc-old", 2 << 30}, {"pvc-old-2", 512 << 20}}}},
	}
	if d := gocmp.Diff(want, r); d != "" {
		t.Error(d)
	}
	if got := b.names(t); got != "by-hand new running" {
		t.Errorf("there are %s", got)
	}
	var deletions []metav1.DeleteOptions
	for _, a := range b.tekton.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok {
			deletions = append(deletions, d.DeleteOptions)
		}
	}
	uid, version, foreground := types.UID("uid-old"), "7old", metav1.DeletePropagationForeground
	if d := gocmp.Diff([]metav1.DeleteOptions{{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &foreground}}, deletions); d != "" {
		t.Error(d)
	}
	var text strings.Builder
	r.Write(&text)
	if want := `deleted old (github o/r main), ended 2026-11-30T07:00:00Z, newer ones are enough
  with claim pvc-old, 2Gi
  with claim pvc-old-2, 512Mi
Namespace ns: deleted 1 of 3 runs, with 2 claims of 2560Mi
`; text.String() != want {
		t.Errorf("got %s", text.String())
	}
}

func TestPruneLeavesWhatIsUsed(t *testing.T) {
	for name, c := range map[string]struct {
		core []runtime.Object
		runs []runtime.Object
		want string
	}{
		"by a pod":                {[]runtime.Object{mounting("pvc-old", "look", corev1.PodRunning)}, nil, "old: in use by pod pod-of-look (claim pvc-old)"},
		"by a pod that waits":     {[]runtime.Object{mounting("pvc-old", "look", corev1.PodPending)}, nil, "old: in use by pod pod-of-look (claim pvc-old)"},
		"by a pod that ended":     {[]runtime.Object{mounting("pvc-old", "look", corev1.PodSucceeded)}, nil, ""},
		"by a run":                {nil, []runtime.Object{pipelineRun("next", -1, manual, bind("pvc-old"))}, "old: in use by PipelineRun next (claim pvc-old)"},
		"by a run that is over":   {nil, []runtime.Object{pipelineRun("next", 1, manual, bind("pvc-old"))}, ""},
		"another claim by a run":  {nil, []runtime.Object{pipelineRun("next", -1, manual, bind("pvc-new"))}, ""},
		"by a pod of the newer":   {[]runtime.Object{mounting("pvc-new", "new", corev1.PodRunning)}, nil, ""},
		"by the run's assistant":  {[]runtime.Object{mounting("pvc-old", "old", corev1.PodRunning)}, nil, ""},
		"by nobody, being a test": {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(append(c.core, claim("pvc-old", "1Gi", "old"), claim("pvc-new", "1Gi", "new")),
				append(c.runs, pipelineRun("old", 5), pipelineRun("new", 2))...)
			r, err := b.Prune(t.Context(), "ns", keepOne())
			if err != nil || r.Err() != nil {
				t.Fatal(err, r.Err())
			}
			if got := left(r); got != c.want {
				t.Errorf("left %q, want %q", got, c.want)
			}
			if gone := !strings.Contains(b.names(t), "old"); gone != (c.want == "") {
				t.Errorf("gone: %v", gone)
			}
		})
	}
}

func TestPruneGoesOnAfterAnError(t *testing.T) {
	runs := []runtime.Object{pipelineRun("a", 9), pipelineRun("b", 8), pipelineRun("c", 7), pipelineRun("d", 1)}
	for name, c := range map[string]struct {
		err     error
		failed  bool
		say     string
		deleted int
	}{
		"forbidden": {apierrors.NewForbidden(resourceOfRuns, "b", errors.New("no right")), true, "1 of 3 runs could not be deleted, the first, b: ", 2},
		"gone":      {apierrors.NewNotFound(resourceOfRuns, "b"), false, "gone already", 2},
		"changed":   {apierrors.NewConflict(resourceOfRuns, "b", errors.New("ResourceVersion in precondition")), false, "changed meanwhile", 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(nil, runs...).refuse("b", c.err)
			r, err := b.Prune(t.Context(), "ns", keepOne())
			if err != nil {
				t.Fatal(err)
			}
			if got := b.names(t); got != "b d" || len(r.Deleted) != c.deleted || len(r.Left) != 1 || r.Left[0].Name != "b" || r.Left[0].Failed != c.failed {
				t.Errorf("there are %s; %+v", got, r)
			}
			switch err := r.Err(); {
			case !c.failed && (err != nil || r.Left[0].Why != c.say):
				t.Errorf("%v, left %s", err, left(r))
			case c.failed && (exitcode.Of(err) != exitcode.IO || !strings.HasPrefix(err.Error(), c.say)):
				t.Errorf("%v", err)
			}
		})
	}
}

func TestPruneDry(t *testing.T) {
	b := newBench([]runtime.Object{claim("pvc-old", "1Gi", "old")}, pipelineRun("old", 5), pipelineRun("new", 2))
	o := keepOne()
	o.DryRun = true
	r, err := b.Prune(t.Context(), "ns", o)
	if err != nil || len(r.Deleted) != 1 || r.Freed != 1<<30 || !r.DryRun || b.names(t) != "new old" {
		t.Errorf("%v, %+v, there are %s", err, r, b.names(t))
	}
	var text strings.Builder
	r.Write(&text)
	if !strings.HasPrefix(text.String(), "would delete old ") || !strings.HasSuffix(text.String(), "would delete 1 of 2 runs, with 1 claims of 1Gi\n") {
		t.Errorf("got %s", text.String())
	}
}

func TestPruneStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(nil, pipelineRun("a", 9), pipelineRun("b", 8), pipelineRun("c", 7))
	b.tekton.PrependReactor("delete", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel(errors.New("enough"))
		return false, nil, nil
	})
	r, err := b.Prune(ctx, "ns", keepOne())
	if err == nil || err.Error() != "enough" || len(r.Deleted) != 1 || b.names(t) != "b c" {
		t.Errorf("%v, %+v, there are %s", err, r, b.names(t))
	}
}

func TestOptionsThatCannotBeMeant(t *testing.T) {
	for say, o := range map[string]Options{
		"no limit is given": {},
		"keep is -1":        {Limits: Limits{Keep: -1, OlderThan: time.Hour}},
		"older-than is -1s": {Limits: Limits{Keep: 1, OlderThan: -time.Second}},
		`selector "a in"`:   {Limits: Limits{Keep: 1}, Selector: "a in"},
	} {
		b := newBench(nil, pipelineRun("a", 9), pipelineRun("b", 8))
		if _, err := b.Prune(t.Context(), "ns", o); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), say) || b.names(t) != "a b" {
			t.Errorf("%s: %v", say, err)
		}
	}
}

func TestPruneWithoutTheRightToAsk(t *testing.T) {
	for _, what := range []string{"pods", "persistentvolumeclaims"} {
		b := newBench(nil, pipelineRun("a", 9), pipelineRun("b", 8))
		b.Kube.(*fake.Clientset).PrependReactor("list", what, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: what}, "", errors.New("no right"))
		})
		if _, err := b.Prune(t.Context(), "ns", keepOne()); exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), what) || b.names(t) != "a b" {
			t.Errorf("%s: %v, there are %s", what, err, b.names(t))
		}
	}
}
