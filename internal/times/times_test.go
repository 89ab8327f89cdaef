package times

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/exitcode"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

const at = "2026-11-30T12:00:" // and seconds

// scene is a run as the API server keeps it; times are seconds after noon.
type scene struct {
	t            *testing.T
	kube, tekton []runtime.Object
	forbidEvents bool
}

func (s *scene) pipelineRun(status string) {
	s.tekton = append(s.tekton, parse[pipelinev1.PipelineRun](s.t, `{apiVersion: tekton.dev/v1, kind: PipelineRun, metadata: {name: run, namespace: team, creationTimestamp: `+at+`00Z}, status: `+status+`}`))
}

func (s *scene) taskRun(name, created, status string) {
	s.tekton = append(s.tekton, parse[pipelinev1.TaskRun](s.t, `{apiVersion: tekton.dev/v1, kind: TaskRun, metadata: {name: run-`+name+`, namespace: team, creationTimestamp: `+at+created+`Z, labels: {tekton.dev/pipelineRun: run, tekton.dev/pipelineTask: `+name+`}}, status: `+status+`}`))
}

func (s *scene) pod(name, scheduled string, pulls ...string) {
	s.kube = append(s.kube, parse[corev1.Pod](s.t, `{apiVersion: v1, kind: Pod, metadata: {name: `+name+`, namespace: team, uid: `+name+`-uid}, status: {conditions: [{type: PodScheduled, status: "True", lastTransitionTime: `+at+scheduled+`Z}]}}`))
	for i, p := range pulls {
		s.kube = append(s.kube, parse[corev1.Event](s.t, `{apiVersion: v1, kind: Event, metadata: {name: `+name+string(rune('a'+i))+`, namespace: team}, reason: Pulled, message: '`+p+`', involvedObject: {kind: Pod, uid: `+name+`-uid}}`))
	}
}

const (
	done   = `conditions: [{type: Succeeded, status: "True"}]`
	failed = `conditions: [{type: Succeeded, status: "False"}]`
)

func step(name, from, to string) string {
	return `{name: ` + name + `, imageID: "sha256:1", terminated: {startedAt: ` + at + from + `Z, finishedAt: ` + at + to + `Z}}`
}

func (s *scene) measure() *Report {
	s.t.Helper()
	r, err := s.clock().Measure(s.t.Context(), "team", "run")
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *scene) clock() Clock {
	kube := fake.NewClientset(s.kube...)
	if s.forbidEvents {
		kube.PrependReactor("list", "events", func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
		})
	}
	return Clock{Kube: kube, Tekton: tektonfake.NewSimpleClientset(s.tekton...), Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 50, 0, time.UTC) }}
}

func TestMeasure(t *testing.T) {
	const (
		here  = `Container image "r/trainer@sha256:1" already present on machine and can be accessed by the pod`
		fetch = `Successfully pulled image "r/yard@sha256:2" in 1.2s (1.5s including waiting). Image size: 12345678 bytes.`
	)
	for _, c := range []struct {
		name string
		set  func(*scene)
		// total, working, between, overhead and its share of the run; then of each
		// task waiting, pulling, starting, working, ending (-1: unknown), and cold or warm
		run    [5]float64
		tasks  [][5]float64
		images string
	}{
		{"a cold task and a warm one", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `40Z}`)
			s.taskRun("fetch", "01", `{podName: p1, `+done+`, completionTime: `+at+`12Z, steps: [`+step("a", "06", "08")+`,`+step("b", "09", "11")+`]}`)
			s.pod("p1", "03", here, fetch)
			s.taskRun("train", "14", `{podName: p2, `+done+`, completionTime: `+at+`39Z, steps: [`+step("train", "17", "38")+`]}`)
			s.pod("p2", "15", here)
		}, [5]float64{40, 25, 4, 15, 7.5}, [][5]float64{{2, 1.5, 1.5, 4, 2}, {1, 0, 2, 21, 1}}, "cold warm"},
		{"tasks side by side count once", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `30Z}`)
			s.taskRun("a", "00", `{podName: p1, `+done+`, completionTime: `+at+`22Z, steps: [`+step("s", "02", "20")+`]}`)
			s.pod("p1", "01", here)
			s.taskRun("b", "00", `{podName: p2, `+done+`, completionTime: `+at+`30Z, steps: [`+step("s", "10", "30")+`]}`)
			s.pod("p2", "01", here)
		}, [5]float64{30, 28, 0, 2, 1}, [][5]float64{{1, 0, 1, 18, 2}, {1, 0, 9, 20, 0}}, "warm warm"},
		{"events are gone", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `20Z}`)
			s.taskRun("a", "00", `{podName: p1, `+done+`, completionTime: `+at+`20Z, steps: [`+step("s", "05", "20")+`]}`)
			s.pod("p1", "02")
		}, [5]float64{20, 15, 0, 5, 5}, [][5]float64{{2, -1, 3, 15, 0}}, "unknown"},
		{"the pod is gone", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `20Z}`)
			s.taskRun("a", "00", `{podName: p1, `+done+`, completionTime: `+at+`20Z, steps: [`+step("s", "05", "20")+`]}`)
		}, [5]float64{20, 15, 0, 5, 5}, [][5]float64{{-1, -1, 5, 15, 0}}, "unknown"},
		{"a task run was deleted", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `20Z, childReferences: [{name: run-a}, {name: run-b}]}`)
			s.taskRun("a", "00", `{podName: p1, `+done+`, completionTime: `+at+`10Z, steps: [`+step("s", "05", "10")+`]}`)
			s.pod("p1", "02", here)
		}, [5]float64{20, 5, 10, 15, 15}, [][5]float64{{2, 0, 3, 5, 0}}, "warm"},
		{"a retried task", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `40Z}`)
			s.taskRun("train", "00", `{podName: p2, `+done+`, startTime: `+at+`21Z, completionTime: `+at+`40Z, steps: [`+step("s", "25", "39")+`],
			  retriesStatus: [{podName: p1, `+failed+`, startTime: `+at+`00Z, completionTime: `+at+`20Z, steps: [`+step("s", "04", "19")+`]}]}`)
			s.pod("p1", "01", fetch)
			s.pod("p2", "22", here)
		}, [5]float64{40, 29, 0, 11, 5.5}, [][5]float64{{1, 1.5, 1.5, 15, 1}, {2, 0, 3, 14, 1}}, "cold warm"},
		{"a run that goes on", func(s *scene) {
			s.pipelineRun(`{conditions: [{type: Succeeded, status: Unknown}]}`)
			s.taskRun("train", "00", `{podName: p1, conditions: [{type: Succeeded, status: Unknown}], steps: [{name: s, running: {startedAt: `+at+`10Z}}]}`)
			s.pod("p1", "01", fetch)
		}, [5]float64{50, 40, 0, 10, 10}, [][5]float64{{1, 1.5, 7.5, 40, 0}}, "cold"},
		{"a pod that waits for a node", func(s *scene) {
			s.pipelineRun(`{conditions: [{type: Succeeded, status: Unknown}]}`)
			s.taskRun("train", "00", `{podName: p1, conditions: [{type: Succeeded, status: Unknown}]}`)
			s.kube = append(s.kube, parse[corev1.Pod](s.t, `{apiVersion: v1, kind: Pod, metadata: {name: p1, namespace: team, uid: u}, status: {conditions: [{type: PodScheduled, status: "False", lastTransitionTime: `+at+`01Z}]}}`))
		}, [5]float64{50, 0, 0, 50, 50}, [][5]float64{{-1, -1, 50, 0, -1}}, "unknown"},
		{"a step that was skipped", func(s *scene) {
			s.pipelineRun(`{` + failed + `, completionTime: ` + at + `20Z}`)
			s.taskRun("a", "00", `{podName: p1, `+failed+`, completionTime: `+at+`20Z, steps: [`+step("s", "05", "10")+`, {name: t, imageID: i, terminationReason: Skipped, terminated: {exitCode: 1, startedAt: `+at+`04Z, finishedAt: `+at+`19Z}}]}`)
			s.pod("p1", "02", here)
		}, [5]float64{20, 5, 0, 15, 15}, [][5]float64{{2, 0, 3, 5, 10}}, "warm"},
		{"an image that was never had", func(s *scene) {
			s.pipelineRun(`{` + failed + `, completionTime: ` + at + `46Z}`)
			s.taskRun("a", "00", `{podName: p1, `+failed+`, completionTime: `+at+`44Z, steps: [{name: s, terminationReason: TaskRunImagePullFailed, terminated: {exitCode: 1, reason: TaskRunImagePullFailed, startedAt: `+at+`00Z, finishedAt: `+at+`44Z}}]}`)
		}, [5]float64{46, 0, 2, 46, 46}, [][5]float64{{-1, -1, 44, 0, -1}}, "unknown"},
		{"clocks that disagree", func(s *scene) {
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `10Z}`)
			s.taskRun("a", "01", `{podName: p1, `+done+`, completionTime: `+at+`08Z, steps: [`+step("s", "03", "09")+`]}`)
			s.pod("p1", "00", fetch)
		}, [5]float64{10, 6, 3, 4, 4}, [][5]float64{{0, 1.5, 1.5, 6, 0}}, "cold"},
		{"a run that has just begun", func(s *scene) { s.pipelineRun(`{}`) }, [5]float64{50, 0, 50, 50, 0}, nil, ""},
		{"a task run of its own", func(s *scene) {
			s.tekton = append(s.tekton, parse[pipelinev1.TaskRun](s.t, `{apiVersion: tekton.dev/v1, kind: TaskRun, metadata: {name: run, namespace: team, creationTimestamp: `+at+`00Z}, status: {podName: p1, `+done+`, completionTime: `+at+`10Z, steps: [`+step("s", "03", "09")+`]}}`))
			s.pod("p1", "01", here)
		}, [5]float64{10, 6, 0, 4, 4}, [][5]float64{{1, 0, 2, 6, 1}}, "warm"},
		{"events may not be seen", func(s *scene) {
			s.forbidEvents = true
			s.pipelineRun(`{` + done + `, completionTime: ` + at + `20Z}`)
			s.taskRun("a", "00", `{podName: p1, `+done+`, completionTime: `+at+`20Z, steps: [`+step("s", "05", "20")+`]}`)
			s.pod("p1", "02", here)
		}, [5]float64{20, 15, 0, 5, 5}, [][5]float64{{2, -1, 3, 15, 0}}, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{t: t}
			c.set(s)
			r := s.measure()
			if got := [5]float64{r.Total, r.Working, r.Between, r.Overhead, r.OverheadPerTask}; got != c.run {
				t.Errorf("total, working, between, overhead, share: %v, want %v", got, c.run)
			}
			var images []string
			for i, task := range r.Tasks {
				images = append(images, task.Images)
				got := [5]float64{value(task.Waiting), value(task.Pulling), value(task.Starting), task.Working, value(task.Ending)}
				if i < len(c.tasks) && got != c.tasks[i] {
					t.Errorf("%s: waiting, pulling, starting, working, ending: %v, want %v", task.Name, got, c.tasks[i])
				}
				var sum float64
				for _, part := range got {
					sum += max(0, part)
				}
				if c.name != "clocks that disagree" && math.Abs(sum-task.Total) > 1e-9 {
					t.Errorf("%s: the parts add up to %v, not to %v", task.Name, sum, task.Total)
				}
			}
			if len(r.Tasks) != len(c.tasks) || strings.Join(images, " ") != c.images {
				t.Errorf("%d tasks, images %v, want %d, %s", len(r.Tasks), images, len(c.tasks), c.images)
			}
			golden(t, c.name, r)
		})
	}
}

func value(p *float64) float64 {
	if p == nil {
		return -1
	}
	return *p
}

func golden(t *testing.T, name string, r *Report) {
	t.Helper()
	var out bytes.Buffer
	r.Write(&out)
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("output differs from %s (-want +got):\n%s", path, d)
	}
}

// A program must be able to tell "unknown" from "none".
func TestUnknownIsNullInJSON(t *testing.T) {
	s := &scene{t: t}
	s.pipelineRun(`{` + done + `, completionTime: ` + at + `20Z}`)
	s.taskRun("a", "00", `{podName: p1, `+done+`, completionTime: `+at+`20Z, steps: [`+step("s", "05", "20")+`]}`)
	text, err := json.Marshal(s.measure())
	if err != nil || !strings.Contains(string(text), `"waiting_seconds":null,"pulling_seconds":null,"starting_seconds":5`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNoSuchRun(t *testing.T) {
	_, err := (&scene{t: t}).clock().Measure(t.Context(), "team", "gone")
	if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "gone in namespace team") {
		t.Errorf("%v", err)
	}
}

func TestMedianOfSeveralRuns(t *testing.T) {
	var out bytes.Buffer
	WriteAll(&out, []*Report{{OverheadPerTask: 9}, {OverheadPerTask: 5}, {OverheadPerTask: 6}})
	if !strings.HasSuffix(out.String(), "Overhead for each task, median of 3 runs: 6 s\n") {
		t.Errorf("%s", out.String())
	}
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{5, 1, 9, 7}, 6}} {
		if got := median(c.of); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.of, got, c.want)
		}
	}
}

// The messages are those of kubelets from v1.24 to v1.36.
func TestParsePull(t *testing.T) {
	for message, want := range map[string]Pull{
		`Container image "r/a:1" already present on machine`:                                                          {Image: "r/a:1", Present: true},
		`Container image "r/a:1" already present on machine and can be accessed by the pod`:                           {Image: "r/a:1", Present: true},
		`Successfully pulled image "r/a@sha256:1" in 312ms (1m2.5s including waiting). Image size: 7 bytes.`:          {Image: "r/a@sha256:1", Seconds: known(62.5), Bytes: 7},
		`Successfully pulled image "r/a:1" in 1.234567891s (1.5s including waiting)`:                                  {Image: "r/a:1", Seconds: known(1.5)},
		`Successfully pulled image "r/a:1" in 2s`:                                                                     {Image: "r/a:1", Seconds: known(2)},
		`Successfully pulled image "r/a:1" in soon`:                                                                   {Image: "r/a:1"},
		"Successfully pulled image \"r/a:1\" in 2s (3s including waiting). Image size: 99999999999999999999 bytes.\n": {Image: "r/a:1", Seconds: known(3)},
	} {
		got, ok := parsePull(message)
		if d := cmp.Diff(want, got); !ok || d != "" {
			t.Errorf("%q: %v\n%s", message, ok, d)
		}
	}
	for _, message := range []string{"", "Pulling image \"r/a:1\"", "Successfully pulled image", "Failed to pull image \"x\": already present on machine"} {
		if p, ok := parsePull(message); ok {
			t.Errorf("%q is taken for %+v", message, p)
		}
	}
}

func FuzzParsePull(f *testing.F) {
	f.Add(`Successfully pulled image "a" in 1s (2s including waiting). Image size: 3 bytes.`)
	f.Add(`Container image "a" already present on machine`)
	f.Fuzz(func(t *testing.T, message string) {
		p, ok := parsePull(message)
		if ok && p.Image == "" || p.Seconds != nil && *p.Seconds < 0 || p.Bytes < 0 {
			t.Errorf("%q gives %+v", message, p)
		}
	})
}

func TestCovered(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := func(from, to int) span {
		return span{noon.Add(time.Duration(from) * time.Second), noon.Add(time.Duration(to) * time.Second)}
	}
	for name, c := range map[string]struct {
		spans []span
		want  float64
	}{
		"none":            {nil, 0},
		"apart":           {[]span{s(5, 6), s(0, 2)}, 3},
		"overlap":         {[]span{s(0, 5), s(3, 8)}, 8},
		"one in another":  {[]span{s(0, 9), s(2, 3), s(4, 5)}, 9},
		"back to back":    {[]span{s(0, 2), s(2, 4)}, 4},
		"the wrong way":   {[]span{s(5, 3), s(6, 7)}, 1},
		"the same, twice": {[]span{s(1, 2), s(1, 2)}, 1},
	} {
		if got := covered(c.spans); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
