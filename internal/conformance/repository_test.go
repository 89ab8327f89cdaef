package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/manifest"
)

const root = "../.."

// folders are those with YAML for clusters, and the kinds that belong there. (Plain
// strings stand for "in whatever version": strict decoding knows the versions.)
func folders() map[string][]string {
	access := []string{"ServiceAccount", "Role", "RoleBinding"}
	return map[string][]string{
		"tasks":          {"Task"},
		"pipelines":      {"Pipeline"},
		"pipelines/runs": {"PipelineRun"},
		"sa":             {"ServiceAccount"},
		"sa/examples":    {"Secret", "ConfigMap", "Role", "RoleBinding"},
		"pv":             {"PersistentVolume", "PersistentVolumeClaim", "StorageClass"},
		"triggers": append([]string{
			"EventListener", "Trigger", "TriggerBinding", "TriggerTemplate", "ClusterRole", "ClusterRoleBinding", "NetworkPolicy",
		}, access...),
		"triggers/queue":         append([]string{"Deployment"}, access...),
		"triggers/prune":         append([]string{"CronJob"}, access...),
		"triggers/examples":      {"Secret", "Ingress", "Route"},
		"triggers/commit-status": append([]string{"Deployment", "Secret"}, access...),
	}
}

// repository is what the rules look at.
type repository struct {
	objects   []manifest.Object
	tasks     map[string]*pipelinev1.Task
	pipelines map[string]*pipelinev1.Pipeline
	runs      []*pipelinev1.PipelineRun
	pushed    []*pipelinev1.PipelineRun // those of runs that TriggerTemplates create
	claims    []*corev1.PersistentVolumeClaim
	accounts  map[string]*corev1.ServiceAccount
}

func newRepository(objects []manifest.Object) repository {
	r := repository{
		objects: objects, tasks: map[string]*pipelinev1.Task{}, pipelines: map[string]*pipelinev1.Pipeline{},
		accounts: map[string]*corev1.ServiceAccount{},
	}
	for _, o := range objects {
		for _, inner := range o.Nested {
			if run, ok := inner.Typed.(*pipelinev1.PipelineRun); ok {
				r.runs, r.pushed = append(r.runs, run), append(r.pushed, run)
			}
		}
		switch t := o.Typed.(type) {
		case *pipelinev1.Task:
			r.tasks[t.Name] = t
		case *pipelinev1.Pipeline:
			r.pipelines[t.Name] = t
		case *pipelinev1.PipelineRun:
			r.runs = append(r.runs, t)
		case *corev1.PersistentVolumeClaim:
			r.claims = append(r.claims, t)
		case *corev1.ServiceAccount:
			r.accounts[t.Name] = t
		}
	}
	return r
}

func decoder(t testing.TB) *manifest.Decoder {
	t.Helper()
	d, err := manifest.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// load reads the YAML of all folders. A folder without any is an error, so that no
// rule holds for want of something to look at.
func load(t testing.TB) repository {
	t.Helper()
	var objects []manifest.Object
	for _, folder := range slices.Sorted(maps.Keys(folders())) {
		read, err := decoder(t).Read(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, read...)
	}
	return newRepository(objects)
}

// each lists tasks and pipelines in the order of their names.
func each[T any](m map[string]T) func(func(string, T) bool) {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// rule is one promise about the YAML.
type rule struct {
	name  string // begins with the row of the fault, where there is one
	check func(repository) []string
	// broken turns good YAML (see good) into such as the rule has to refuse:
	// pairs of a text that occurs in it and its replacement.
	broken [][2]string
}

func TestTheRepositoryHoldsEveryRule(t *testing.T) {
	r := load(t)
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			for _, problem := range rule.check(r) {
				t.Error(problem)
			}
		})
	}
}

func TestEveryRuleFindsItsFault(t *testing.T) {
	text, err := os.ReadFile("testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	parse := func(t *testing.T, text string) repository {
		t.Helper()
		objects, err := decoder(t).Decode("testdata/good.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return newRepository(objects)
	}
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			if problems := rule.check(parse(t, good)); len(problems) > 0 {
				t.Fatalf("refuses what is right: %v", problems)
			}
			if len(rule.broken) == 0 {
				t.Fatal("no example of the fault")
			}
			for _, b := range rule.broken {
				if strings.Count(good, b[0]) != 1 {
					t.Errorf("%q occurs %d times in the good example", b[0], strings.Count(good, b[0]))
					continue
				}
				if problems := rule.check(parse(t, strings.Replace(good, b[0], b[1], 1))); len(problems) == 0 {
					t.Errorf("did not notice %q", b[1])
				}
			}
		})
	}
}

// problemf collects findings.
type findings []string

func (f *findings) addf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }
