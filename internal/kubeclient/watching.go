package kubeclient

import (
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Watching makes a client of Tekton's objects whose requests no clock ends, for
// programs that watch: each request of theirs needs a context that ends.
func (c *Cluster) Watching() (tekton.Interface, error) {
	config := rest.CopyConfig(c.REST)
	config.Timeout = 0
	client, err := tekton.NewForConfig(config)
	return client, exitcode.New(exitcode.Usage, err)
}
