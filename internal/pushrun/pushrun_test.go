package pushrun_test

import (
	"maps"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/pushrun"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func run(labels, annotations map[string]string) *pipelinev1.PipelineRun {
	l := map[string]string{"trainyard.dev/trigger": "push", "trainyard.dev/forge": "github", "trainyard.dev/repository": "yard", "trainyard.dev/commit": commit}
	a := map[string]string{
		"trainyard.dev/repository": "trainyard/trainyard", "trainyard.dev/branch": "release/1.0",
		"trainyard.dev/before": strings.Repeat("0", 40), "trainyard.dev/sender": "ann", "trainyard.dev/delivery": "d-1",
	}
	maps.Copy(l, labels)
	maps.Copy(a, annotations)
	return &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Labels: l, Annotations: a}}
}

func TestAPushedRunSaysWhichPush(t *testing.T) {
	got, pushed, err := pushrun.Read(run(nil, nil))
	if err != nil || !pushed {
		t.Fatal(pushed, err)
	}
	want := pushrun.Push{
		Forge: pushrun.GitHub, Repository: "trainyard/trainyard", Branch: "release/1.0", Commit: commit,
		Before: pushrun.NoCommit, Sender: "ann", Delivery: "d-1",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestARunThatNoPushStartedIsNoError(t *testing.T) {
	_, pushed, err := pushrun.Read(&pipelinev1.PipelineRun{})
	if pushed || err != nil {
		t.Error(pushed, err)
	}
}

func TestAPushedRunThatLiesIsRefused(t *testing.T) {
	for what, broken := range map[string]*pipelinev1.PipelineRun{
		"trainyard.dev/forge":      run(map[string]string{"trainyard.dev/forge": "sourcehut"}, nil),
		"trainyard.dev/commit":     run(map[string]string{"trainyard.dev/commit": "main"}, nil),
		"trainyard.dev/repository": run(nil, map[string]string{"trainyard.dev/repository": "owner/.."}),
		"trainyard.dev/branch":     run(nil, map[string]string{"trainyard.dev/branch": "main$(x)"}),
		"trainyard.dev/before":     run(nil, map[string]string{"trainyard.dev/before": "HEAD"}),
	} {
		_, pushed, err := pushrun.Read(broken)
		if !pushed || err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: pushed %v, error %v", what, pushed, err)
		}
	}
}
