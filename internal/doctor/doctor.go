package doctor

import (
	"cmp"
	"context"
	"errors"
	"time"

	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	triggers "github.com/tektoncd/triggers/pkg/client/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Doctor is what an examination needs of its surroundings.
type Doctor struct {
	Kube   kubernetes.Interface
	Tekton tekton.Interface
	// Triggers is nil where nobody asks what a push starts.
	Triggers triggers.Interface
	Now      func() time.Time
	// Dial reaches registries and stores; it may know ways into the cluster.
	Dial Dialer
	// InCluster says that Dial resolves the names of Services: yard runs in a pod,
	// or dials through port forwards.
	InCluster bool
	// Logs returns the end of a container's log; nil asks Kube.
	Logs func(pod, container string) []string
}

// Options says what is examined; what is empty is the usual name.
type Options struct {
	Namespace       string
	ServiceAccounts []string // before start; a run names its own
	Pipeline        string   // before start
	Claim           string   // before start: a claim that the run will use
	RegistrySecret  string
	StoreSecret     string
	StoreConfig     string
	// What overrides the parameters of the run or the defaults of the pipeline.
	Builder            string
	Image              string
	InsecureRegistries []string
	Endpoint, Bucket   string
	// WriteProbe also writes and deletes an object in the store.
	WriteProbe bool
}

func (o Options) withDefaults() Options {
	if len(o.ServiceAccounts) == 0 {
		o.ServiceAccounts = []string{"trainyard-build", "trainyard-train"}
	}
	o.StoreSecret = cmp.Or(o.StoreSecret, "s3-credentials")
	o.StoreConfig = cmp.Or(o.StoreConfig, "trainyard-store")
	return o
}

// BeforeStart examines whether a run of the pipeline would find what it needs.
func (d *Doctor) BeforeStart(ctx context.Context, o Options) (*Report, error) {
	e := d.exam(o.withDefaults())
	e.report.Subject = "Namespace " + e.o.Namespace
	if there, err := e.namespace(ctx); err != nil || !there {
		return e.report, err
	}
	return e.report, firstError(
		func() error { return e.tekton(ctx) },
		func() error { return e.serviceAccounts(ctx, e.o.ServiceAccounts) },
		func() error { return e.pipeline(ctx, e.o.Pipeline) },
		func() error { return e.storage(ctx, e.o.Claim) },
		func() error { return e.services(ctx) },
		func() error { return e.pushTrigger(ctx) },
	)
}

// services examines the registry and the store with the credentials of the cluster.
func (e *exam) services(ctx context.Context) error {
	return firstError(
		func() error { return e.registry(ctx) },
		func() error { return e.store(ctx) },
	)
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// exam is one examination: what it found, and what it has read already.
type exam struct {
	*Doctor
	o      Options
	report *Report
	cache  cache

	params      params              // of the run, or the defaults of the pipeline
	lists       map[string][]string // parameters that are arrays
	podTemplate *podTemplate        // of the run
	sizes       map[string]sizes    // that the run gives tasks
	run         string              // the PipelineRun, if it is one
	begun       []string            // tasks of the run that have a TaskRun
	bundles     []string            // that tasks come from
	claims      map[string]bool     // that were examined: whether they are well
}

func (d *Doctor) exam(o Options) *exam {
	return &exam{Doctor: d, o: o, report: &Report{Findings: []Finding{}}, params: params{}, lists: map[string][]string{}, claims: map[string]bool{}, sizes: map[string]sizes{}}
}

// cannotSee turns a refusal into a warning, so that the rest is still examined,
// and leaves any other error of the API as it is: one that ends the examination.
func (e *exam) cannotSee(check, what string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		e.warn(check, "ask for permission to get and list "+what+", or let someone who has it run this", "%s may not be seen with these rights, so this was left out", what)
		return nil
	}
	if errors.Is(err, context.Canceled) || exitcode.Of(err) != exitcode.Failed {
		return err
	}
	return exitcode.Errorf(exitcode.IO, "read %s: %w", what, err)
}
