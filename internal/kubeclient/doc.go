// Package kubeclient finds the cluster that the user means, the way kubectl does:
// a kubeconfig by flag or KUBECONFIG, one of its contexts, or the ServiceAccount of
// the pod that yard runs in. It makes the typed clients and a dialer that reaches
// Services from outside the cluster.
//
// It decides nothing about what is asked of the cluster.
package kubeclient
