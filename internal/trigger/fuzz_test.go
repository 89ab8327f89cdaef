package trigger_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/trigger/deliveries"
)

// FuzzSignedBodies gives the Triggers whatever, with a valid signature: if a run comes of
// it, then it is the run of a plain push but for the five things that a push may say, and
// those are in their forms.
func FuzzSignedBodies(f *testing.F) {
	plain := map[pushrun.Forge]deliveries.Delivery{}
	for _, d := range pushes() {
		plain[d.Forge] = d
	}
	for _, table := range [][]deliveries.Delivery{deliveries.Table(secrets()), deliveries.FilesTable(secrets())} {
		for i, d := range table {
			// Few, and small ones: others would keep the fuzzer from what it is good at.
			if i%15 == 0 && len(d.Body) < 10_000 {
				f.Add(uint8(slices.Index(deliveries.Forges(), d.Forge)), d.Body, d.Header.Get("X-GitHub-Delivery"))
			}
		}
	}
	l := listener(f, deliveries.AnyFile(source))
	usual := map[pushrun.Forge]*pipelinev1.PipelineRun{}
	for forge, d := range plain {
		r, err := run(f, l.Deliver(f.Context(), d.Header, d.Body).Runs[string(forge)])
		if err != nil {
			f.Fatal(err)
		}
		usual[forge] = r
	}
	f.Fuzz(func(t *testing.T, forge uint8, body []byte, id string) {
		of := deliveries.Forges()[int(forge)%len(deliveries.Forges())]
		d := deliveries.Delivery{Forge: of, Header: plain[of].Header.Clone(), Body: body}
		for _, name := range []string{"X-GitHub-Delivery", "X-Gitea-Delivery", "Idempotency-Key"} {
			d.Header.Set(name, id)
		}
		deliveries.Sign(&d, secrets()[of])
		out := l.Deliver(t.Context(), d.Header, d.Body)
		if len(out.Runs) == 0 {
			return
		}
		data, ok := out.Runs[string(of)]
		if !ok || len(out.Runs) != 1 {
			t.Fatalf("another Trigger than that of %s makes a run: %s", of, slices.Collect(maps.Keys(out.Runs)))
		}
		unchanged(t, usual[of], data)
	})
}

var (
	senderForm   = regexp.MustCompile(`^[A-Za-z0-9@._+\[\]-]{0,100}$`)
	deliveryForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{0,100}$`)
	commitForm   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

func unchanged(t *testing.T, usual *pipelinev1.PipelineRun, data []byte) {
	t.Helper()
	got, err := run(t, data)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	push, pushed, err := pushrun.Read(got)
	if err != nil || !pushed {
		t.Fatalf("%v, %v: %s", pushed, err, data)
	}
	if !senderForm.MatchString(push.Sender) || !deliveryForm.MatchString(push.Delivery) || !commitForm.MatchString(push.Commit) || !commitForm.MatchString(push.Before) || push.Commit == pushrun.NoCommit ||
		push.Repository != deliveries.Repository || (push.Branch != deliveries.Branch && push.Branch != deliveries.Release) {
		t.Errorf("%+v", push)
	}
	want := usual.DeepCopy()
	want.Name = deliveries.ShortName + "-" + push.Commit
	want.Labels[pushrun.CommitLabel] = push.Commit
	if push.Branch == deliveries.Release {
		want.Labels[pushrun.BranchLabel] = "release-1.0"
	}
	want.Annotations = map[string]string{
		pushrun.RepositoryLabel: push.Repository, pushrun.BranchLabel: push.Branch, pushrun.BeforeAnnotation: push.Before,
		pushrun.SenderAnnotation: push.Sender, pushrun.DeliveryAnnotation: push.Delivery,
	}
	for i, p := range want.Spec.Params {
		switch p.Name {
		case "revision", "commit":
			want.Spec.Params[i].Value.StringVal = push.Commit
		case "image":
			want.Spec.Params[i].Value.StringVal = "registry.example.com/trainyard/trainer:" + push.Commit
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("more than the push differs (-want +got):\n%s", diff)
	}
}
