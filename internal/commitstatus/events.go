package commitstatus

import (
	tektonscheme "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/scheme"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// NewEvents returns what writes events about the runs of a namespace, until stop is
// called. An event that says the same again counts up the one that is there.
func NewEvents(kube kubernetes.Interface, namespace string) (events record.EventRecorder, stop func()) {
	b := record.NewBroadcaster()
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events(namespace)})
	return b.NewRecorder(tektonscheme.Scheme, corev1.EventSource{Component: "trainyard-commit-status"}), b.Shutdown
}
