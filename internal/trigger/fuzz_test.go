package trigger_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/trigger"
	"github.com/trainyard/trainyard/internal/trigger/deliveries"
)

// FuzzSignedBodies gives the Triggers whatever, with a valid signature: if a run comes of
// it, then it is the run of a plain push but for the five things that a push may say, and
// those are in their forms.
func FuzzSignedBodies(f *testing.F) {
	for _, table := range [][]deliveries.Delivery{deliveries.Table(secrets()), deliveries.FilesTable(secrets())} {
		for i, d := range table {
			// Few, and small ones: others would keep the fuzzer from what it is good at.
			if i%15 == 0 && len(d.Body) < 10_000 {
				f.Add(uint8(slices.Index(deliveries.Forges(), d.Forge)), d.Body, d.Header.Get("X-GitHub-Delivery"))
			}
		}
	}
	j := newJudge(f)
	f.Fuzz(func(t *testing.T, forge uint8, body []byte, id string) {
		j.deliver(t, deliveries.Forges()[int(forge)%len(deliveries.Forges())], body, id)
	})
}

// FuzzFields gives them a push with whatever in its fields, so that more comes through.
func FuzzFields(f *testing.F) {
	commit, before := deliveries.CommitOf(pushrun.GitHub, "fuzz"), pushrun.NoCommit
	f.Add(uint8(0), deliveries.Repository, "refs/heads/main", commit, before, "ann", "Work", "trainer/a.go", "1")
	f.Add(uint8(1), deliveries.Repository, "refs/heads/release/1.0", commit, commit, "$(params.url)", "Work $(uid)", `"`, `", "x": "`)
	f.Add(uint8(2), "Trainyard/trainyard", "refs/tags/main", "main", "", "\n", "\x00", "", "\\")
	j := newJudge(f)
	f.Fuzz(func(t *testing.T, forge uint8, repository, ref, after, before, sender, message, file, id string) {
		commit := map[string]any{"id": after, "message": message, "added": []string{file}, "modified": []string{}, "removed": []string{}}
		body, err := json.Marshal(map[string]any{
			"object_kind": "push", "event_name": "push", "ref": ref, "after": after, "before": before, "forced": false,
			"repository": map[string]any{"full_name": repository}, "project": map[string]any{"path_with_namespace": repository},
			"sender": map[string]any{"login": sender}, "user_username": sender, "commits": []any{commit}, "head_commit": commit,
		})
		if err != nil {
			t.Fatal(err)
		}
		j.deliver(t, deliveries.Forges()[int(forge)%len(deliveries.Forges())], body, id)
	})
}

// judge knows the run of a plain push of each forge.
type judge struct {
	listener *trigger.Listener
	plain    map[pushrun.Forge]deliveries.Delivery
	usual    map[pushrun.Forge]*pipelinev1.PipelineRun
}

func newJudge(f *testing.F) judge {
	f.Helper()
	j := judge{listener(f, deliveries.AnyFile(source)), map[pushrun.Forge]deliveries.Delivery{}, map[pushrun.Forge]*pipelinev1.PipelineRun{}}
	for _, d := range pushes() {
		r, err := run(f, j.listener.Deliver(f.Context(), d.Header, d.Body).Runs[string(d.Forge)])
		if err != nil {
			f.Fatal(err)
		}
		j.plain[d.Forge], j.usual[d.Forge] = d, r
	}
	return j
}

func (j judge) deliver(t *testing.T, of pushrun.Forge, body []byte, id string) {
	t.Helper()
	d := deliveries.Delivery{Forge: of, Header: j.plain[of].Header.Clone(), Body: body}
	for _, name := range []string{"X-GitHub-Delivery", "X-Gitea-Delivery", "Idempotency-Key"} {
		d.Header.Set(name, id)
	}
	deliveries.Sign(&d, secrets()[of])
	out := j.listener.Deliver(t.Context(), d.Header, d.Body)
	if len(out.Runs) == 0 {
		return
	}
	data, ok := out.Runs[string(of)]
	if !ok || len(out.Runs) != 1 {
		t.Fatalf("another Trigger than that of %s makes a run: %s", of, slices.Collect(maps.Keys(out.Runs)))
	}
	unchanged(t, j.usual[of], data)
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
