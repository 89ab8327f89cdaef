package commitstatus

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// pushed is a run that a push to a forge started.
func pushed(name string, kind pushrun.Forge) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{
			pushrun.TriggerLabel: pushrun.TriggerPush, pushrun.ForgeLabel: string(kind),
			pushrun.RepositoryLabel: "name", pushrun.CommitLabel: commit,
		},
		Annotations: map[string]string{pushrun.RepositoryLabel: "owner/name", pushrun.BranchLabel: "main"},
	}}
}

// ended gives a run its end.
func ended(run *pipelinev1.PipelineRun, status corev1.ConditionStatus, reason, message string) *pipelinev1.PipelineRun {
	run = run.DeepCopy()
	run.Status.Status = duckv1.Status{Conditions: duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: status, Reason: reason, Message: message}}}
	return run
}

func withResults(run *pipelinev1.PipelineRun, pairs ...string) *pipelinev1.PipelineRun {
	run = run.DeepCopy()
	for i := 0; i < len(pairs); i += 2 {
		run.Status.Results = append(run.Status.Results, pipelinev1.PipelineRunResult{Name: pairs[i], Value: *pipelinev1.NewStructuredValues(pairs[i+1])})
	}
	return run
}

func TestWhatIsToldOfARun(t *testing.T) {
	const page = "s3://trainyard/runs/r/report.html"
	fresh := pushed("r", pushrun.GitLab)
	with := func(change func(*pipelinev1.PipelineRun)) *pipelinev1.PipelineRun {
		run := fresh.DeepCopy()
		change(run)
		return run
	}
	pending := with(func(r *pipelinev1.PipelineRun) { r.Spec.Status = pipelinev1.PipelineRunSpecStatusPending })
	overtaken := with(func(r *pipelinev1.PipelineRun) {
		r.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelledRunFinally
		r.Annotations[pushrun.SupersededByAnnotation] = "r-2"
	})
	cancelled := with(func(r *pipelinev1.PipelineRun) { r.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelled })
	counts := "Tasks Completed: 6 (Failed: 1, Cancelled 0), Skipped: 1"
	for name, c := range map[string]struct {
		run    *pipelinev1.PipelineRun
		failed []TaskFailure
		state  State
		want   string
	}{
		"it waits":                                  {pending, nil, Pending, "waiting for its turn; run team/r"},
		"Tekton has seen that it waits":             {ended(pending, corev1.ConditionUnknown, "PipelineRunPending", `PipelineRun "r" is pending`), nil, Pending, "waiting for its turn; run team/r"},
		"it was let in, and Tekton has not seen it": {ended(fresh, corev1.ConditionUnknown, "PipelineRunPending", `PipelineRun "r" is pending`), nil, Pending, "waiting for its turn; run team/r"},
		"Tekton has not seen it":                    {fresh, nil, Running, "running; run team/r"},
		"it runs":                                   {ended(fresh, corev1.ConditionUnknown, "Running", "Tasks Completed: 1"), nil, Running, "running; run team/r"},
		"it is being cancelled":                     {ended(overtaken, corev1.ConditionUnknown, "CancelledRunningFinally", ""), nil, Running, "running; run team/r"},
		"it runs and says something":                {withResults(ended(fresh, corev1.ConditionUnknown, "Running", ""), "verdict", "blocked"), nil, Running, "running; run team/r"},

		"it promoted": {
			withResults(ended(fresh, corev1.ConditionTrue, "Succeeded", ""), "verdict", "pass", "reasons", "", "model-digest", "sha256:"+strings.Repeat("ab", 32), "model-uri", "s3://trainyard/models/llm/abab", "report-uri", page), nil,
			Success, "passed the gate, promoted abababababab to s3://trainyard/models/llm/abab; report " + page,
		},
		"it promoted, and has no digest":  {withResults(ended(fresh, corev1.ConditionTrue, "Succeeded", ""), "verdict", "pass", "model-uri", "s3://b/m"), nil, Success, "passed the gate, promoted to s3://b/m; run team/r"},
		"it passed, and promoted nothing": {withResults(ended(fresh, corev1.ConditionTrue, "Completed", ""), "verdict", "pass", "model-uri", ""), nil, Success, "passed the gate; run team/r"},
		"no gate judged":                  {withResults(ended(fresh, corev1.ConditionTrue, "Succeeded", ""), "verdict", "none"), nil, Success, "succeeded; run team/r"},
		"a pipeline without results":      {ended(fresh, corev1.ConditionTrue, "Succeeded", ""), nil, Success, "succeeded; run team/r"},
		"it succeeded although cancelled": {ended(overtaken, corev1.ConditionTrue, "Succeeded", ""), nil, Success, "succeeded; run team/r"},

		"blocked": {
			withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "blocked", "reasons", "validation loss 6.6 is more than 1.5; test loss 6.6 is more than 1.5", "report-uri", page),
			[]TaskFailure{{"gate", `"step-gate" exited with code 1`}},
			Failure, "blocked: validation loss 6.6 is more than 1.5; test loss 6.6 is more than 1.5; report " + page,
		},
		"blocked by a gate that does not fail the run": {withResults(ended(fresh, corev1.ConditionTrue, "Completed", ""), "verdict", "blocked", "reasons", "too bad"), nil, Failure, "blocked: too bad; run team/r"},
		"blocked, and no reasons":                      {withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "blocked"), nil, Failure, "blocked by the gate; run team/r"},
		"reasons in several lines":                     {withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "blocked", "reasons", "one\ntwo\x1b[31m\u202e three\n"), nil, Failure, "blocked: one two [31m three; run team/r"},

		"a task before the gate": {
			withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "none", "report-uri", page), []TaskFailure{{"build-image", `"step-build" exited with code 20: Error`}},
			Failure, `task build-image failed: "step-build" exited with code 20; report ` + page,
		},
		"a task of which the report knows why": {
			withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "none", "reasons", "train failed: lr is 0, want more"), []TaskFailure{{"train", `"step-train" exited with code 2: Error`}},
			Failure, "train failed: lr is 0, want more; run team/r",
		},
		"a task of which the report does not know why": {
			withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "none", "reasons", "build-image failed"), []TaskFailure{{"build-image", `"step-build" exited with code 20: Error`}},
			Failure, `task build-image failed: "step-build" exited with code 20; run team/r`,
		},
		"a task after the gate, and why": {
			withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "pass", "reasons", "promote failed: the store is away"), []TaskFailure{{"promote", "x"}},
			Failure, "passed the gate, but promote failed: the store is away; run team/r",
		},
		"two tasks":                {ended(fresh, corev1.ConditionFalse, "Failed", counts), []TaskFailure{{"sample", "OOMKilled"}, {"evaluate", "x"}}, Failure, "tasks sample, evaluate failed: OOMKilled; run team/r"},
		"a task after the gate":    {withResults(ended(fresh, corev1.ConditionFalse, "Failed", counts), "verdict", "pass"), []TaskFailure{{"promote", "exit 4"}}, Failure, "passed the gate, but task promote failed: exit 4; run team/r"},
		"a task that says nothing": {ended(fresh, corev1.ConditionFalse, "Failed", counts), []TaskFailure{{"train", ""}}, Failure, "task train failed; run team/r"},
		"tasks that nobody has":    {ended(fresh, corev1.ConditionFalse, "Failed", counts), nil, Failure, "failed: " + counts + "; run team/r"},

		"cancelled":  {ended(cancelled, corev1.ConditionFalse, "Cancelled", `PipelineRun "r" was cancelled`), nil, Cancelled, "cancelled; run team/r"},
		"superseded": {ended(overtaken, corev1.ConditionFalse, "Cancelled", ""), nil, Cancelled, "superseded by run r-2; run team/r"},
		"superseded, and its training failed of that": {ended(overtaken, corev1.ConditionFalse, "Failed", counts), []TaskFailure{{"train", "SIGTERM"}}, Cancelled, "superseded by run r-2; run team/r"},

		"timed out":        {ended(fresh, corev1.ConditionFalse, "PipelineRunTimeout", `PipelineRun "r" failed to finish within "1h0m0s"`), nil, Error, `timed out: failed to finish within "1h0m0s"; run team/r`},
		"no such pipeline": {ended(fresh, corev1.ConditionFalse, "CouldntGetPipeline", "not found"), nil, Error, "could not run (CouldntGetPipeline): not found; run team/r"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Telling{Context: "trainyard"}.From(c.run, pushTo(pushrun.GitLab), c.failed)
			want := Status{State: c.state, Description: c.want, Context: "trainyard"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescriptionsFitTheForge(t *testing.T) {
	long := strings.Repeat("test loss 6.6159 is more than 1.5; ", 40)
	run := withResults(ended(pushed("r", pushrun.GitHub), corev1.ConditionFalse, "Failed", ""), "verdict", "blocked", "reasons", long, "report-uri", "s3://b/k")
	for kind, limit := range map[pushrun.Forge]int{pushrun.GitHub: 140, pushrun.GitLab: 255, pushrun.Gitea: 500} {
		got := Telling{}.From(run, pushTo(kind), nil).Description
		if n := utf8.RuneCountInString(got); n > limit || n < limit-12 || !strings.HasPrefix(got, "blocked: test loss 6.6159 is more than 1.5; test") || !strings.HasSuffix(got, "…") {
			t.Errorf("%s: %d characters: %q", kind, n, got)
		}
		if words := strings.Fields(strings.TrimSuffix(got, "…")); !strings.Contains(long, words[len(words)-1]) {
			t.Errorf("%s: cut within a word: %q", kind, got)
		}
	}
	// GitHub refuses what takes four bytes; the others take it.
	run = withResults(ended(pushed("r", pushrun.GitHub), corev1.ConditionFalse, "Failed", ""), "verdict", "blocked", "reasons", "🐛 über", "report-uri", "s3://b/🐛")
	if got := (Telling{}.From(run, pushTo(pushrun.GitHub), nil).Description); got != "blocked: \ufffd über; report s3://b/\ufffd" {
		t.Errorf("%q", got)
	}
	if got := (Telling{}.From(run, pushTo(pushrun.GitLab), nil).Description); got != "blocked: 🐛 über; report s3://b/🐛" {
		t.Errorf("%q", got)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"ten  chars", 9, "ten chars"},
		{"one two three", 13, "one two three"},
		{"one two three", 12, "one two…"},
		{"one two three", 8, "one two…"},
		{"one two, three", 10, "one two…"},
		{"one two, three", 9, "one two…"},
		{"one", 2, "o…"},
		{"one", 1, "…"},
		{"one", 0, ""},
		{"a verylongwordthatneverends", 12, "a verylongw…"}, // half of nothing would be left
		{"äöü äöü äöü", 8, "äöü äöü…"},
		{"bad \xff byte", 20, "bad \ufffd byte"},
		{" \t a\r\nb\u2028c \x07d\u200be ", 20, "a b c de"},
	} {
		if got := Cut(c.text, c.limit); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("blocked: test loss 6.6 is more than 1.5", 20)
	f.Add("🐛\xff\u202e\nwörter", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := Cut(text, limit)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if n := utf8.RuneCountInString(got); n > max(limit, 0) {
			t.Errorf("%d characters, want %d", n, limit)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("%q hides something", got)
		}
		if limit <= 0 {
			return
		}
		whole := Cut(text, 1<<30)
		if kept, cut := strings.CutSuffix(got, ellipsis); got != whole && (!cut || !strings.HasPrefix(whole, kept)) {
			t.Errorf("%q is not the beginning of %q", got, whole)
		}
		if again := Cut(got, limit); again != got {
			t.Errorf("%q, cut again, is %q", got, again)
		}
	})
}

func TestLinks(t *testing.T) {
	v := linkValues{namespace: "team", run: "r-1", commit: commit, report: "s3://trainyard/runs/r 1/report.html"}
	for name, c := range map[string]struct {
		template string
		values   linkValues
		want     string
	}{
		"a dashboard":              {"https://tekton.example.com/#/namespaces/{namespace}/pipelineruns/{run}", v, "https://tekton.example.com/#/namespaces/team/pipelineruns/r-1"},
		"a gateway of the store":   {"https://s3.example.com/{bucket}/{key}", v, "https://s3.example.com/trainyard/runs/r%201/report.html"},
		"a console of the store":   {"https://console.example.com/?b={bucket}&c={commit}", v, "https://console.example.com/?b=trainyard&c=" + commit},
		"the address, as a value":  {"https://view.example.com/?at={report}", v, "https://view.example.com/?at=s3%3A%2F%2Ftrainyard%2Fruns%2Fr%201%2Freport.html"},
		"a report that has a page": {"{report}", linkValues{report: "https://reports.example.com/r"}, "https://reports.example.com/r"},
		"with something after it":  {"{report}?run={run}", linkValues{report: "https://reports.example.com/r", run: "a"}, "https://reports.example.com/r?run=a"},
		"in plain http":            {"http://reports.internal/{run}", v, "http://reports.internal/r-1"},

		"there is no report yet":          {"https://s3.example.com/{bucket}/{key}", linkValues{run: "r"}, ""},
		"a report elsewhere":              {"https://s3.example.com/{bucket}/{key}", linkValues{report: "file:///r/report.html"}, ""},
		"a report that is no page":        {"{report}", v, ""},
		"a report that is a script":       {"{report}", linkValues{report: "javascript:alert(1)"}, ""},
		"a report with a password":        {"{report}", linkValues{report: "https://a:b@host/r"}, ""},
		"a report with a line break":      {"{report}", linkValues{report: "https://host/r\n"}, ""},
		"a report with a blank":           {"{report}", linkValues{report: "https://host/a b"}, ""},
		"a report that is nothing":        {"{report}", linkValues{}, ""},
		"a key that climbs":               {"https://s3.example.com/public/{bucket}/{key}", linkValues{report: "s3://b/../../private"}, ""},
		"a bucket that climbs":            {"https://s3.example.com/public/{bucket}/{key}", linkValues{report: "s3://../private"}, ""},
		"a key that would be a parameter": {"https://x.example.com/?k={key}&u=me", linkValues{report: "s3://b/k&u=you#?%"}, "https://x.example.com/?k=k%26u%3Dyou%23%3F%25&u=me"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := ParseLink(c.template)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := l.address(c.values); got != c.want || ok != (c.want != "") {
				t.Errorf("%q %v, want %q", got, ok, c.want)
			}
		})
	}
}

func TestTemplatesOfLinksThatAreRefused(t *testing.T) {
	for template, say := range map[string]string{
		"":                                "want https://",
		"reports.example.com/{run}":       "want https://",
		"ftp://reports.example.com/{run}": "want https://",
		"javascript:{run}":                "want https://",
		"https://a:b@host/{run}":          "without user and password",
		"https://{bucket}.example.com/":   "host has to be written out",
		"https://{bucket}/":               "host has to be written out",
		"https://host:{run}/":             "",
		"https://host/{branch}":           "there is no {branch}",
		"https://host/{}":                 "there is no {}",
		"https://host/{run":               "a brace has no other",
		"https://host/run}":               "a brace has no other",
		"{run}":                           "want https://",
	} {
		if _, err := ParseLink(template); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v", template, err)
		}
	}
}

func TestTheFirstLinkWhoseValuesAreKnownIsTaken(t *testing.T) {
	var links []Link
	for _, template := range []string{"https://s3.example.com/{bucket}/{key}", "https://tekton.example.com/{run}"} {
		l, err := ParseLink(template)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	run := ended(pushed("r", pushrun.GitLab), corev1.ConditionTrue, "Succeeded", "")
	reported := withResults(run, "report-uri", "s3://b/r/report.html")
	far := withResults(run, "report-uri", "s3://b/"+strings.Repeat("r", 255))
	for name, c := range map[string]struct {
		run               *pipelinev1.PipelineRun
		link, description string
	}{
		"no report yet":                   {pushed("r", pushrun.GitLab), "https://tekton.example.com/r", "running"},
		"a report":                        {reported, "https://s3.example.com/b/r/report.html", "succeeded"},
		"longer than GitLab takes an URL": {far, "https://tekton.example.com/r", "succeeded"},
	} {
		got := Telling{Links: links}.From(c.run, pushTo(pushrun.GitLab), nil)
		if got.TargetURL != c.link || got.Description != c.description {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzLink(f *testing.F) {
	f.Add("https://s3.example.com/{bucket}/{key}", "s3://b/k")
	f.Add("{report}", "https://host/")
	f.Add("https://h/?x={report}#{run}", "s3://b/../k")
	f.Fuzz(func(t *testing.T, template, report string) {
		l, err := ParseLink(template)
		if err != nil {
			return
		}
		got, ok := l.address(linkValues{namespace: "team", run: "r", commit: commit, report: report})
		if !ok {
			return
		}
		if !strings.HasPrefix(got, "https://") && !strings.HasPrefix(got, "http://") && !strings.HasPrefix(strings.ToLower(got), "http") {
			t.Errorf("%q", got)
		}
		// Only the template says where people are led, not what a run says.
		if host := hostOf(template); host != "" && hostOf(got) != host {
			t.Errorf("template %q, report %q leads to %q", template, report, got)
		}
	})
}

// hostOf is what stands between // and the next /, ? or #.
func hostOf(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok || strings.HasPrefix(address, "{") {
		return ""
	}
	return rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune("/?#", r) }))]
}

func TestWhatWasToldIsReadBack(t *testing.T) {
	want := Status{State: Failure, Description: `blocked: "a" <b> …`, TargetURL: "https://h/?a=b&c", Context: "trainyard"}
	patch, err := want.write("uid-1")
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Metadata struct {
			UID         string            `json:"uid"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := strict(patch, &p); err != nil || p.Metadata.UID != "uid-1" || len(p.Metadata.Annotations) != 1 {
		t.Fatalf("%s: %v", patch, err)
	}
	got, ok := read(p.Metadata.Annotations)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"state": "success"}`)
	f.Add(`success`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := read(map[string]string{pushrun.ReportedAnnotation: text})
		if ok != (s.State != "") || ok && !json.Valid([]byte(text)) {
			t.Errorf("%q: %+v %v", text, s, ok)
		}
	})
}
