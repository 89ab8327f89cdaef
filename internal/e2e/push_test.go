//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/demo"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// hyperparameters is the file that a push says with how to train.
const hyperparameters = "examples/push/train.yaml"

// TestAPushTrains pushes to the demo's git server, whose hook tells the demo's listener.
// A Trigger of the test's own beside the demo's listens to a branch of the test's own.
func TestAPushTrains(t *testing.T) {
	e := connect(t)
	branch := fmt.Sprintf("e2e-%d", time.Now().UnixNano())
	s := e.stagesIn(t, demo.Namespace, e.Bucket)
	s.putCorpus(t)
	e.listen(t, branch)
	source := e.repository(t, branch)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, prefix := range []string{"models/" + branch + "/", "corpora/e2e.txt"} {
			s.remove(ctx, t, prefix)
		}
	})

	source.write(t, hyperparameters, smallTraining(1))
	first := s.trained(t, branch, source.push(t, "Train with seed 1"))

	source.write(t, hyperparameters, smallTraining(2))
	second := s.trained(t, branch, source.push(t, "Train with seed 2"))
	if first["model-digest"] == second["model-digest"] {
		t.Errorf("two seeds, one model: %s", first["model-digest"])
	}

	// What a run does not depend on starts none: the listener has looked at the push
	// before the next one's run is there.
	source.append(t, "README.md", "\nA word more.\n")
	readme := source.push(t, "Say a word more")
	source.write(t, hyperparameters, smallTraining(3))
	skipped := source.push(t, "Train with seed 3 [skip train]")
	source.write(t, hyperparameters, smallTraining(4))
	last := source.push(t, "Train with seed 4")
	e.until(t, time.Minute, "the last push has a run", func(ctx context.Context) (bool, string, error) {
		return e.hasRun(ctx, last)
	})
	for what, commit := range map[string]string{"a change of README.md": readme, "[skip train]": skipped} {
		if has, _, err := e.hasRun(t.Context(), commit); err != nil || has {
			t.Errorf("%s: a run %v, error %v", what, has, err)
		}
	}

	// The branch goes, and comes again with the same commit: that was trained.
	source.git(t, "push", "--quiet", e.GitURL, ":refs/heads/"+branch)
	source.git(t, "push", "--quiet", e.GitURL, "HEAD:refs/heads/"+branch)
	source.write(t, hyperparameters, smallTraining(5))
	end := source.push(t, "Train with seed 5")
	e.until(t, time.Minute, "the push after that has a run", func(ctx context.Context) (bool, string, error) {
		return e.hasRun(ctx, end)
	})
	if runs := e.runsOf(t, branch); len(runs) != 4 {
		t.Errorf("%d runs of seeds 1, 2, 4 and 5: %v", len(runs), runs)
	}
}

func smallTraining(seed int) string {
	return fmt.Sprintf(`prepare: {vocab-size: 512}
train: {max-iters: 40, batch-size: 8, block: 64, eval-interval: 20, seed: %d}
`, seed)
}

// write replaces a file of the clone.
func (r repository) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// listen adds a Trigger for a branch to the demo's, whose runs train a model of the
// branch's name, with the path filter on, and removes it and its runs afterwards.
func (e env) listen(t *testing.T, branch string) {
	t.Helper()
	trigger := e.object(t, "trigger", "github")
	allowed := fmt.Sprintf(`{"repositories": {%q: {"name": "trainyard", "url": %q}}, "branches": [%q],
		"paths": ["^trainer/", "^examples/push/"], "config": %q}`, e.WebhookRepository, e.GitURL, branch, hyperparameters)
	spec := trigger["spec"].(map[string]any)
	allow(t, trigger, allowed)
	spec["bindings"] = []any{map[string]any{"ref": "push", "kind": "TriggerBinding"}, map[string]any{"ref": branch, "kind": "TriggerBinding"}}
	binding := e.object(t, "triggerbinding", "training")
	values := map[string]string{"name": branch, "corpus": "store:corpora/e2e.txt", "max-perplexity": "", "max-regression": "", "min-train-iter": "", "max-iters": ""}
	for _, p := range binding["spec"].(map[string]any)["params"].([]any) {
		p := p.(map[string]any)
		if value, has := values[p["name"].(string)]; has {
			p["value"] = value
			delete(values, p["name"].(string))
		}
	}
	if len(values) > 0 {
		t.Fatalf("the settings have no %v", maps.Keys(values))
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if t.Failed() {
			e.keep(ctx, t, demo.Namespace)
		}
		for _, kind := range []string{"trigger", "triggerbinding"} {
			if _, err := e.Kubectl(ctx, "--namespace", demo.Namespace, "delete", kind, branch, "--ignore-not-found"); err != nil {
				t.Error(err)
			}
		}
		if _, err := e.Kubectl(ctx, "--namespace", demo.Namespace, "delete", "pipelineruns", "--selector", pushrun.BranchLabel+"="+branch); err != nil {
			t.Error(err)
		}
	})
	for _, object := range []map[string]any{binding, trigger} {
		metadata := object["metadata"].(map[string]any)
		object["metadata"] = map[string]any{"name": branch, "namespace": demo.Namespace, "labels": metadata["labels"]}
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		e.command(t, e.Checkout, data, e.Programs["kubectl"], "--kubeconfig", e.Kubeconfig, "apply", "--filename=-")
	}
}

// object reads an object of the demo's namespace.
func (e env) object(t *testing.T, kind, name string) map[string]any {
	t.Helper()
	text, err := e.Kubectl(t.Context(), "--namespace", demo.Namespace, "get", kind, name, "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func (e env) hasRun(ctx context.Context, commit string) (bool, string, error) {
	_, err := e.tekton.TektonV1().PipelineRuns(demo.Namespace).Get(ctx, "trainyard-"+commit, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, "there is no run of " + commit, nil
	}
	return err == nil, "", err
}

// runsOf are the names of a branch's runs.
func (e env) runsOf(t *testing.T, branch string) []string {
	t.Helper()
	list, err := e.tekton.TektonV1().PipelineRuns(demo.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: pushrun.BranchLabel + "=" + branch})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, run := range list.Items {
		names = append(names, run.Name)
	}
	return names
}

// trained waits for the run of a commit, which has to promote a model whose image and
// lineage have that commit, and returns its results.
func (s stages) trained(t *testing.T, model, commit string) map[string]string {
	t.Helper()
	s.until(t, time.Minute, "the push has a run", func(ctx context.Context) (bool, string, error) { return s.hasRun(ctx, commit) })
	run := s.wait(t, 10*time.Minute, &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "trainyard-" + commit}})
	if !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Fatalf("run %s: %s", run.Name, message(run))
	}
	push, pushed, err := pushrun.Read(run)
	if err != nil || !pushed || push.Commit != commit || push.Branch != model || push.Repository != s.WebhookRepository || push.Delivery == "" {
		t.Errorf("the run says of its push: %+v, %v, %v", push, pushed, err)
	}
	got := results(run)
	if got["verdict"] != "pass" || got["commit"] != commit {
		t.Errorf("results %v", got)
	}
	s.checkRevision(t, got["image"], commit)

	// The trainer itself says where the model comes from.
	t.Setenv("AWS_ACCESS_KEY_ID", s.account.id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.account.secret)
	trainer := filepath.Join(t.TempDir(), "trainer")
	s.command(t, filepath.Join(s.Checkout, "trainer"), nil, "go", "build", "-trimpath", "-o", trainer, "./cmd/trainer")
	lineage := s.command(t, t.TempDir(), nil, trainer, "lineage", "--name="+model, "--output=json",
		"--store=s3://"+s.bucket, "--s3-endpoint="+s.S3, "--s3-region=us-east-1")
	for what, want := range map[string]string{"commit": commit, "image": got["image"], "model": strings.TrimPrefix(got["model-digest"], "sha256:")} {
		if want == "" || !strings.Contains(lineage, want) {
			t.Errorf("the lineage of run %s does not name the %s %s:\n%s", run.Name, what, want, lineage)
		}
	}
	return got
}

// checkRevision looks for the commit in the labels of an image.
func (e env) checkRevision(t *testing.T, image, commit string) {
	t.Helper()
	reference, err := name.NewDigest(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(reference, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	config, err := pulled.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config.Labels["org.opencontainers.image.revision"]; got != commit {
		t.Errorf("image %s has the label of revision %q, want %s", image, got, commit)
	}
}
