package kubeclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	triggers "github.com/tektoncd/triggers/pkg/client/clientset/versioned"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// requestTimeout ends a request whose answer does not come.
const requestTimeout = 30 * time.Second

// Choice says which cluster and namespace are meant; what is empty is kubectl's
// default.
type Choice struct {
	Kubeconfig string // path; empty: KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount
	Context    string // of the kubeconfig
	Namespace  string // empty: the context's, or that of the pod
}

// Cluster is a connection to an API server.
type Cluster struct {
	Kube      kubernetes.Interface
	Tekton    tekton.Interface
	Triggers  triggers.Interface
	REST      *rest.Config
	Namespace string
}

// Connect makes the clients. It talks to nobody yet, so a server that is down
// shows at the first question.
func Connect(c Choice) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Namespace = c.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, exitcode.New(exitcode.Usage, explain(c, err))
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, exitcode.New(exitcode.Usage, explain(c, err))
	}
	config.Timeout = cmp.Or(config.Timeout, requestTimeout)
	config.UserAgent = "yard"
	// yard asks many small questions once: the default of 5 a second is for
	// controllers that ask for ever.
	config.QPS, config.Burst = 50, 100
	// A warning of the API server about a deprecated version is nothing that the
	// user of yard can act on.
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, exitcode.New(exitcode.Usage, explain(c, err))
	}
	pipelines, err := tekton.NewForConfig(config)
	if err != nil {
		return nil, exitcode.New(exitcode.Usage, explain(c, err))
	}
	pushes, err := triggers.NewForConfig(config)
	if err != nil {
		return nil, exitcode.New(exitcode.Usage, explain(c, err))
	}
	return &Cluster{Kube: kube, Tekton: pipelines, Triggers: pushes, REST: config, Namespace: namespace}, nil
}

func explain(c Choice, err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err) && c.Kubeconfig == "":
		return errors.New("no cluster is named: give --kubeconfig or KUBECONFIG, or write ~/.kube/config")
	case c.Kubeconfig != "":
		return fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return fmt.Errorf("kubeconfig: %w", err)
}

// Ping asks the API server for its version, so that a cluster that cannot be
// reached is one clear error and not one for each question.
func (c *Cluster) Ping(ctx context.Context) (string, error) {
	// The discovery client takes no context.
	type answer struct {
		version string
		err     error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := c.Kube.Discovery().ServerVersion()
		if err != nil {
			got <- answer{err: err}
			return
		}
		got <- answer{version: v.GitVersion}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-got:
		if a.err != nil {
			host := ""
			if c.REST != nil {
				host = " at " + c.REST.Host
			}
			return "", exitcode.Errorf(exitcode.IO, "the cluster%s does not answer: %w: is it running, and is this the right context?", host, a.err)
		}
		return a.version, nil
	}
}
