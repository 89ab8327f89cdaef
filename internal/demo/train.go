package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/demo/kubectl"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/pause"
)

const (
	// corpusBytes and corpusKey: the corpus that make run trains on, and where the
	// pipeline looks for one when nobody says.
	corpusBytes = "2000000"
	corpusKey   = "corpora/godoc.txt"
	// runLabel tells runs of the same input apart from others.
	runLabel = "dev.trainyard/demo"
)

// Corpus cuts the corpus and puts it into S3.
func (d *Demo) Corpus(ctx context.Context, step *progress.Step) error {
	file := filepath.Join(d.Checkout, "runs", "corpus", "godoc-"+corpusBytes+".txt")
	if _, err := run(ctx, d.Checkout, nil, "make", "corpus", "CORPUS_BYTES="+corpusBytes); err != nil {
		return err
	}
	k, err := d.kubectl()
	if err != nil {
		return err
	}
	account, err := d.s3Account(ctx, k)
	if err != nil {
		return err
	}
	there, err := d.putFile(ctx, account, corpusKey, file)
	if err != nil {
		return err
	}
	step.Done("s3://%s/%s put", Bucket, corpusKey)
	if there {
		step.Done("s3://%s/%s is there", Bucket, corpusKey)
	}
	return nil
}

// pipelineRun is what Train reads of a PipelineRun.
type pipelineRun struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
		Results    []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"results"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func succeeded(conditions []condition) condition {
	for _, c := range conditions {
		if c.Type == "Succeeded" {
			return c
		}
	}
	return condition{Status: "Unknown"}
}

// taskRun is what Train reads of a TaskRun.
type taskRun struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		PodName    string      `json:"podName"`
		StartTime  time.Time   `json:"startTime"`
		Completion *time.Time  `json:"completionTime"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

func (t taskRun) task() string { return t.Metadata.Labels["tekton.dev/pipelineTask"] }

// Train pushes the checkout's last commit, runs the pipeline on it, and follows
// the run. A run of the same input that is there is followed instead, or reported
// when it has succeeded.
func (d *Demo) Train(ctx context.Context, step *progress.Step) error {
	k, err := d.kubectl()
	if err != nil {
		return err
	}
	commit, dirty, err := d.pushSource(ctx)
	if err != nil {
		return err
	}
	params := map[string]string{
		"url":                 d.GitURL(),
		"revision":            commit,
		"builder-image":       d.inCluster.Builder,
		"run-image":           d.inCluster.Run,
		"image":               d.RegistryHost() + "/trainyard/trainer:demo",
		"insecure-registries": d.RegistryHost(),
	}
	key := inputKey(params, d.inCluster.Tool)
	name, there, err := d.findRun(ctx, k, key)
	if err != nil {
		return err
	}
	if !there {
		if name, err = d.startRun(ctx, key, params); err != nil {
			return err
		}
	}
	if err := d.follow(ctx, k, step, name); err != nil {
		return err
	}
	d.run = name
	switch {
	case there:
		step.Done("run %s of commit %.12s was there", name, commit)
	case dirty:
		step.Done("run %s of commit %.12s (what is not committed is not in it)", name, commit)
	default:
		step.Done("run %s of commit %.12s", name, commit)
	}
	return nil
}

// inputKey names everything that a run's outcome depends on.
func inputKey(params map[string]string, tool string) string {
	// Maps are encoded with sorted keys.
	data, err := json.Marshal([]any{params, tool, corpusBytes})
	if err != nil {
		panic(err) // strings alone
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:16]
}

// findRun looks for a run of the same input that runs or has succeeded.
func (d *Demo) findRun(ctx context.Context, k kubectl.CLI, key string) (name string, found bool, err error) {
	out, err := k.Run(ctx, "--namespace", Namespace, "get", "pipelineruns", "--selector", runLabel+"="+key,
		"--sort-by=.metadata.creationTimestamp", "--output=json")
	if err != nil {
		return "", false, err
	}
	var list struct{ Items []pipelineRun }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return "", false, err
	}
	for _, item := range list.Items {
		if succeeded(item.Status.Conditions).Status != "False" {
			name, found = item.Metadata.Name, true
		}
	}
	return name, found, nil
}

// startRun starts the pipeline as a person would, with tkn.
func (d *Demo) startRun(ctx context.Context, key string, params map[string]string) (string, error) {
	tkn, err := d.images.program("tkn")
	if err != nil {
		return "", err
	}
	args := []string{
		"pipeline", "start", "train-and-promote", "--kubeconfig", d.kubeconfig(), "--namespace", Namespace,
		"--workspace", "name=shared,volumeClaimTemplateFile=" + filepath.Join(d.Checkout, "pv", "volume-claim-template.yaml"),
		"--pod-template", filepath.Join(d.Checkout, "pipelines", "tkn", "pod-template.yaml"),
		"--serviceaccount", "trainyard-train", "--task-serviceaccount", "build-image=trainyard-build",
		"--use-param-defaults", "--labels", runLabel + "=" + key, "--output", "name",
	}
	for name, value := range params {
		args = append(args, "--param", name+"="+value)
	}
	out, err := run(ctx, d.Checkout, nil, tkn, args...)
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(out)
	if name == "" || strings.ContainsAny(name, " \n") {
		return "", fmt.Errorf("tkn pipeline start answers %q", out)
	}
	return name, nil
}

// follow waits for the end of a run and says what it is at.
func (d *Demo) follow(ctx context.Context, k kubectl.CLI, step *progress.Step, name string) error {
	for {
		out, err := k.Run(ctx, "--namespace", Namespace, "get", "pipelinerun", name, "--output=json")
		if err != nil {
			return err
		}
		var current pipelineRun
		if err := json.Unmarshal([]byte(out), &current); err != nil {
			return err
		}
		state := succeeded(current.Status.Conditions)
		switch state.Status {
		case "True":
			return nil
		case "False":
			return d.failure(ctx, k, name, state)
		}
		tasks, err := d.tasks(ctx, k, name)
		if err != nil {
			return err
		}
		step.Doing("%s", d.where(ctx, k, tasks))
		if err := pause.For(ctx, time.Second); err != nil {
			return errors.Join(err, fmt.Errorf("run %s goes on in the cluster", name))
		}
	}
}

// failure says why a run failed, in the words of its tasks.
func (d *Demo) failure(ctx context.Context, k kubectl.CLI, name string, state condition) error {
	why := state.Reason + ": " + state.Message
	tasks, err := d.tasks(ctx, k, name)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if of := succeeded(task.Status.Conditions); of.Status == "False" {
			why = task.task() + ": " + of.Message
			break
		}
	}
	return fmt.Errorf("run %s: %s\nKUBECONFIG=%s %s doctor --namespace %s %s says more", name, why, d.kubeconfig(), d.yard(), Namespace, name)
}

func (d *Demo) tasks(ctx context.Context, k kubectl.CLI, run string) ([]taskRun, error) {
	out, err := k.Run(ctx, "--namespace", Namespace, "get", "taskruns", "--selector", "tekton.dev/pipelineRun="+run,
		"--sort-by=.metadata.creationTimestamp", "--output=json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []taskRun }
	err = json.Unmarshal([]byte(out), &list)
	return list.Items, err
}

// where says which tasks are done, and what the running ones last printed.
func (d *Demo) where(ctx context.Context, k kubectl.CLI, tasks []taskRun) string {
	var done, running []string
	for _, task := range tasks {
		if task.Status.Completion != nil {
			done = append(done, task.task())
			continue
		}
		line := ""
		if task.Status.PodName != "" {
			log, err := k.Run(ctx, "--namespace", Namespace, "logs", task.Status.PodName, "--all-containers", "--tail=1", "--since=60s")
			if err == nil { // a container that waits has none yet
				lines := strings.Split(strings.TrimSpace(log), "\n")
				line = lines[len(lines)-1]
			}
		}
		running = append(running, strings.TrimSpace(task.task()+" "+line))
	}
	if len(done) == 0 {
		return strings.Join(running, "; ")
	}
	return strings.Join(running, "; ") + " (done: " + strings.Join(done, ", ") + ")"
}

// Outcome prints the verdict, where the model is, how long each task took, and
// what the model answered before and after training.
func (d *Demo) Outcome(ctx context.Context) error {
	k, err := d.kubectl()
	if err != nil {
		return err
	}
	out, err := k.Run(ctx, "--namespace", Namespace, "get", "pipelinerun", d.run, "--output=json")
	if err != nil {
		return err
	}
	var current pipelineRun
	if err := json.Unmarshal([]byte(out), &current); err != nil {
		return err
	}
	tasks, err := d.tasks(ctx, k, d.run)
	if err != nil {
		return err
	}
	w := d.Out
	fmt.Fprintf(w, "\n%s\n", d.run)
	for _, result := range current.Status.Results {
		fmt.Fprintf(w, "  %-18s %v\n", result.Name, result.Value)
	}
	fmt.Fprintln(w, "\nseconds of each task")
	for _, task := range tasks {
		if task.Status.Completion != nil {
			fmt.Fprintf(w, "  %-18s %5.0f\n", task.task(), task.Status.Completion.Sub(task.Status.StartTime).Seconds())
		}
	}
	for _, task := range tasks {
		if strings.HasPrefix(task.task(), "sample") {
			log, err := k.Run(ctx, "--namespace", Namespace, "logs", task.Status.PodName, "--container=step-sample")
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "\nthe same prompt, before and after\n%s\n", indent(log))
		}
	}
	fmt.Fprintf(w, `
the cluster is yours now
  export KUBECONFIG=%s
  kubectl --namespace %s get pipelineruns
  make down                 removes it

a push trains: commit something (examples/push/train.yaml says how to train), then
  git push %s HEAD:%s
  kubectl --namespace %s get pipelineruns --selector trainyard.dev/trigger=push --watch
`, d.kubeconfig(), Namespace, d.GitURL(), PushBranch, Namespace)
	return nil
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
