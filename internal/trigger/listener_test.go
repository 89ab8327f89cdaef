package trigger_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"

	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/trigger"
	"github.com/trainyard/trainyard/internal/trigger/deliveries"
)

const (
	folder = "../../triggers"
	source = "https://git.internal/trainyard.git"
)

func secrets() deliveries.Secrets {
	return deliveries.Secrets{pushrun.GitHub: "of github", pushrun.GitLab: "of gitlab", pushrun.Gitea: "of gitea"}
}

func decoder(t testing.TB) *manifest.Decoder {
	t.Helper()
	d, err := manifest.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listener is the one of the repository with other settings.
func listener(t testing.TB, s deliveries.Settings) *trigger.Listener {
	t.Helper()
	objects, err := decoder(t).Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	expression, err := s.Expression()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal([]map[string]string{{"key": "allowed", "expression": expression}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if tr, ok := o.Typed.(*triggersv1beta1.Trigger); ok {
			tr.Spec.Interceptors[1].Params[0].Value.Raw = overlay
		}
	}
	known := trigger.Secrets{}
	for forge, secret := range secrets() {
		known[string(forge)+"-webhook"] = secret
	}
	l, err := trigger.New(t.Context(), objects, known)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run decodes what a template made as strictly as an API server would.
func run(t testing.TB, data []byte) (*pipelinev1.PipelineRun, error) {
	t.Helper()
	objects, err := decoder(t).Decode("made.json", data)
	if err != nil {
		return nil, err
	}
	if err := manifest.Validate(t.Context(), objects...); err != nil {
		return nil, err
	}
	r, ok := objects[0].Typed.(*pipelinev1.PipelineRun)
	if !ok {
		return nil, errors.New("made a " + objects[0].Kind.Kind)
	}
	return r, nil
}

// params are those of a run that are not the same for every push.
func params(t *testing.T, r *pipelinev1.PipelineRun) map[string]string {
	t.Helper()
	of := map[string]string{}
	for _, p := range r.Spec.Params {
		if _, twice := of[p.Name]; twice {
			t.Errorf("parameter %s twice", p.Name)
		}
		of[p.Name] = p.Value.StringVal
	}
	return map[string]string{"url": of["url"], "revision": of["revision"], "commit": of["commit"], "image": of["image"], "config": of["config"]}
}

func check(t *testing.T, s deliveries.Settings, d deliveries.Delivery, out trigger.Outcome) {
	t.Helper()
	for name := range out.Runs {
		if d.Run == nil || name != string(d.Forge) {
			t.Fatalf("Trigger %s makes %s", name, out.Runs[name])
		}
	}
	if d.Run == nil {
		refusal := &trigger.Refusal{}
		by := deliveries.ByListener
		if errors.As(out.Refused[string(d.Forge)], &refusal) {
			by = refusal.Name
		}
		if by != d.By {
			t.Errorf("refused by %s, want %s: %.2000v", by, d.By, out.Refused[string(d.Forge)])
		}
		return
	}
	data, ok := out.Runs[string(d.Forge)]
	if !ok {
		t.Fatalf("no run: %.2000v", out.Refused[string(d.Forge)])
	}
	r, err := run(t, data)
	if err != nil {
		t.Fatal(err)
	}
	push, pushed, err := pushrun.Read(r)
	if err != nil || !pushed {
		t.Fatalf("read as a run of a push: %v, %v", pushed, err)
	}
	if diff := cmp.Diff(d.Run.Push, push); diff != "" {
		t.Errorf("the push (-want +got):\n%s", diff)
	}
	if r.Name != d.Run.Name || r.GenerateName != "" || r.Spec.Status != pipelinev1.PipelineRunSpecStatusPending {
		t.Errorf("run %q %q, status %q, want %q that waits", r.Name, r.GenerateName, r.Spec.Status, d.Run.Name)
	}
	config := s.Config
	if config != "" {
		config = "/workspace/shared/source/" + r.Name + "/" + config
	}
	want := map[string]string{
		"url": source, "revision": d.Run.Push.Commit, "commit": d.Run.Push.Commit,
		"image": "registry.example.com/trainyard/trainer:" + d.Run.Push.Commit, "config": config,
	}
	if diff := cmp.Diff(want, params(t, r)); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	labels := map[string]string{
		"app.kubernetes.io/part-of": "trainyard", "trainyard.dev/trigger": "push", "trainyard.dev/forge": string(d.Forge),
		"trainyard.dev/repository": deliveries.ShortName, "trainyard.dev/branch": strings.ReplaceAll(d.Run.Push.Branch, "/", "-"), "trainyard.dev/commit": d.Run.Push.Commit,
	}
	if diff := cmp.Diff(labels, r.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestWhichDeliveriesStartWhichRun(t *testing.T) {
	for name, table := range map[string]struct {
		settings   deliveries.Settings
		deliveries []deliveries.Delivery
	}{
		"any file":   {deliveries.AnyFile(source), deliveries.Table(secrets())},
		"some files": {deliveries.SomeFiles(source), deliveries.FilesTable(secrets())},
	} {
		t.Run(name, func(t *testing.T) {
			l := listener(t, table.settings)
			for _, d := range table.deliveries {
				t.Run(d.Name, func(t *testing.T) {
					check(t, table.settings, d, l.Deliver(t.Context(), d.Header, d.Body))
				})
			}
		})
	}
}

// A Trigger without its Secret is off.
func TestATriggerWithoutItsSecretTakesNothing(t *testing.T) {
	objects, err := decoder(t).Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	l, err := trigger.New(t.Context(), objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deliveries.Table(deliveries.Secrets{}) {
		if out := l.Deliver(t.Context(), d.Header, d.Body); len(out.Runs) > 0 {
			t.Errorf("%s: %s", d.Name, slices.Collect(maps.Values(out.Runs)))
		}
	}
}

// The settings of the files are such as the filter takes.
func TestTheSettingsAsTheyAreTakeAPush(t *testing.T) {
	objects, err := decoder(t).Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	known := trigger.Secrets{}
	for forge, secret := range secrets() {
		known[string(forge)+"-webhook"] = secret
	}
	l, err := trigger.New(t.Context(), objects, known)
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, d := range pushes() {
		started += len(l.Deliver(t.Context(), d.Header, d.Body).Runs)
	}
	if started != len(deliveries.Forges()) {
		t.Errorf("%d of %d pushes start a run", started, len(deliveries.Forges()))
	}
}

// A setting that a run could not be made of starts none: it is data of users.
func TestSettingsThatAreWrongStartNothing(t *testing.T) {
	plain := pushes()
	change := func(edit func(*deliveries.Settings)) deliveries.Settings {
		s := deliveries.AnyFile(source)
		edit(&s)
		return s
	}
	one := func(name, url string) deliveries.Settings {
		return change(func(s *deliveries.Settings) {
			s.Repositories[deliveries.Repository] = deliveries.Source{Name: name, URL: url}
		})
	}
	repository := func(name string) deliveries.Settings {
		return change(func(s *deliveries.Settings) { s.Repositories[name] = deliveries.Source{Name: "a", URL: source} })
	}
	branch := func(name string) deliveries.Settings {
		return change(func(s *deliveries.Settings) { s.Branches = []string{name} })
	}
	config := func(file string) deliveries.Settings {
		return change(func(s *deliveries.Settings) { s.Config = file })
	}
	same := func(s string) string { return s }
	to := func(old, text string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, `"`+old+`"`, `"`+text+`"`) }
	}
	for name, tc := range map[string]struct {
		settings deliveries.Settings
		push     func(body string) string
		starts   bool
	}{
		"as in the table":                {one("trainyard", source), same, true},
		"a name of 22 letters":           {one(strings.Repeat("a", 22), source), same, true},
		"a name of 23 letters":           {one(strings.Repeat("a", 23), source), same, false},
		"a name in capitals":             {one("Trainyard", source), same, false},
		"a name that begins with a dot":  {one(".trainyard", source), same, false},
		"a name that ends with -":        {one("trainyard-", source), same, false},
		"a name that begins with 1":      {one("1", source), same, false},
		"no name":                        {one("", source), same, false},
		"a name of one letter":           {one("a", source), same, true},
		"a name with a variable":         {one("$(uid)", source), same, false},
		"an ssh address":                 {one("a", "ssh://git@git.example.com:2222/~ann/trainyard.git"), same, true},
		"a host:path address":            {one("a", "git@git.example.com:trainyard/trainyard.git"), same, true},
		"no address":                     {one("a", ""), same, false},
		"an address that is a flag":      {one("a", "--upload-pack=x"), same, false},
		"an address with a quote":        {one("a", `https://git.example.com/"`), same, false},
		"an address with a variable":     {one("a", "https://git.example.com/$(params.x)"), same, false},
		"an address that is too long":    {one("a", "https://git.example.com/"+strings.Repeat("a", 500)), same, false},
		"a config file":                  {config("conf/train-2.yaml"), same, true},
		"a config file above":            {config("../train.yaml"), same, false},
		"a config file above, later":     {config("a/../../train.yaml"), same, false},
		"a config file by its path":      {config("/etc/passwd"), same, false},
		"a config file with a variable":  {config("$(params.x)"), same, false},
		"a config file that is too long": {config(strings.Repeat("a", 201)), same, false},
		"a group of groups":              {repository("a/b/c"), to(deliveries.Repository, "a/b/c"), true},
		"a repository with a quote":      {repository(`a/b"c`), to(deliveries.Repository, `a/b\"c`), false},
		"a repository with a variable":   {repository("a/$(uid)"), to(deliveries.Repository, "a/$(uid)"), false},
		"a repository above":             {repository("a/../b"), to(deliveries.Repository, "a/../b"), false},
		"a repository that is too long":  {repository("a/" + strings.Repeat("b", 200)), to(deliveries.Repository, "a/"+strings.Repeat("b", 200)), false},
		"a branch with a quote":          {branch(`ma"in`), to("refs/heads/main", `refs/heads/ma\"in`), false},
		"a branch with a variable":       {branch("$(uid)"), to("refs/heads/main", "refs/heads/$(uid)"), false},
		"a branch that is too long":      {branch(strings.Repeat("b", 201)), to("refs/heads/main", "refs/heads/"+strings.Repeat("b", 201)), false},
		"a branch that is a tag":         {branch("refs/tags/v1"), to("refs/heads/main", "refs/tags/v1"), false},
		"no branch":                      {change(func(s *deliveries.Settings) { s.Branches = []string{} }), same, false},
		"no repository":                  {change(func(s *deliveries.Settings) { clear(s.Repositories) }), same, false},
		"a pattern that is none":         {change(func(s *deliveries.Settings) { s.Paths = []string{"("} }), same, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := listener(t, tc.settings)
			for _, d := range plain {
				d.Header, d.Body = d.Header.Clone(), []byte(tc.push(string(d.Body)))
				deliveries.Sign(&d, secrets()[d.Forge])
				out := l.Deliver(t.Context(), d.Header, d.Body)
				if got := len(out.Runs) == 1; got != tc.starts {
					t.Errorf("%s: starts a run: %v, want %v: %.500v", d.Name, got, tc.starts, out.Refused[string(d.Forge)])
				}
				for _, data := range out.Runs {
					if _, err := run(t, data); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// Labels hold less than branches do.
func TestABranchBecomesALabel(t *testing.T) {
	plain := pushes()[0]
	for branch, want := range map[string]string{
		"main": "main", "release/1.0": "release-1.0", "a/b/c": "a-b-c", "_x_": "x", "9": "9",
		"feature/" + strings.Repeat("x", 100):                          "feature-" + strings.Repeat("x", 55),
		strings.Repeat("x", 62) + "/rest":                              strings.Repeat("x", 62),
		strings.Repeat("x", 61) + "./rest":                             strings.Repeat("x", 61),
		"dependabot/go_modules/google.golang.org/grpc-1.80.0/and.more": "dependabot-go_modules-google.golang.org-grpc-1.80.0-and.more",
	} {
		s := deliveries.AnyFile(source)
		s.Branches = []string{branch}
		d := pushTo(plain, branch)
		out := listener(t, s).Deliver(t.Context(), d.Header, d.Body)
		if len(out.Runs) != 1 {
			t.Errorf("%s: no run: %.500v", branch, out.Refused["github"])
			continue
		}
		r, err := run(t, out.Runs["github"])
		if err != nil {
			t.Errorf("%s: %v", branch, err)
			continue
		}
		if r.Labels["trainyard.dev/branch"] != want || r.Annotations["trainyard.dev/branch"] != branch {
			t.Errorf("%s: label %q, want %q; annotation %q", branch, r.Labels["trainyard.dev/branch"], want, r.Annotations["trainyard.dev/branch"])
		}
	}
}

func pushTo(d deliveries.Delivery, branch string) deliveries.Delivery {
	d.Header, d.Body = d.Header.Clone(), []byte(strings.ReplaceAll(string(d.Body), `"refs/heads/main"`, `"refs/heads/`+branch+`"`))
	deliveries.Sign(&d, secrets()[d.Forge])
	return d
}

// pushes are the plainest ones of the table, one of each forge.
func pushes() []deliveries.Delivery {
	return slices.DeleteFunc(deliveries.Table(secrets()), func(d deliveries.Delivery) bool { return !strings.HasSuffix(d.Name, ": a push") })
}

// A listener that could not be judged by these tests is an error, not silence.
func TestAListenerIsAWholeOne(t *testing.T) {
	objects, err := decoder(t).Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	var without []manifest.Object
	for _, o := range objects {
		if o.Kind.Kind != "EventListener" {
			without = append(without, o)
		}
	}
	if _, err := trigger.New(context.Background(), without, nil); err == nil || !strings.Contains(err.Error(), "0 event listeners") {
		t.Errorf("error %v", err)
	}
	var bare []manifest.Object
	for _, o := range objects {
		if o.Kind.Kind != "TriggerBinding" {
			bare = append(bare, o)
		}
	}
	l, err := trigger.New(t.Context(), bare, trigger.Secrets{"github-webhook": "of github"})
	if err != nil {
		t.Fatal(err)
	}
	d := pushes()[0]
	if out := l.Deliver(t.Context(), d.Header, d.Body); len(out.Runs) > 0 || !strings.Contains(out.Refused["github"].Error(), "there is no push") {
		t.Errorf("without bindings: %v", out.Refused["github"])
	}
}
