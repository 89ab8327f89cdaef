package kubectl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// restarts after which a container that crashes is given up.
const restarts = 3

// pods is what WaitForPods reads of kubectl's list.
type pods struct {
	Items []struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Status struct {
			ContainerStatuses []struct {
				Name         string `json:"name"`
				Ready        bool   `json:"ready"`
				RestartCount int    `json:"restartCount"`
				State        struct {
					Waiting *struct {
						Reason  string `json:"reason"`
						Message string `json:"message"`
					} `json:"waiting"`
				} `json:"state"`
			} `json:"containerStatuses"`
		} `json:"status"`
	} `json:"items"`
}

// hopeless returns why a pod will not become ready by waiting, or "".
func (p pods) hopeless() string {
	for _, pod := range p.Items {
		for _, container := range pod.Status.ContainerStatuses {
			waiting := container.State.Waiting
			switch {
			case waiting == nil:
			case waiting.Reason == "CrashLoopBackOff" && container.RestartCount >= restarts:
				return fmt.Sprintf("pod %s: container %s crashes (%d restarts)", pod.Metadata.Name, container.Name, container.RestartCount)
			case waiting.Reason == "ImagePullBackOff" || waiting.Reason == "InvalidImageName" || waiting.Reason == "CreateContainerConfigError":
				return fmt.Sprintf("pod %s: %s: %s", pod.Metadata.Name, waiting.Reason, waiting.Message)
			}
		}
	}
	return ""
}

// WaitForDeployments returns when every deployment of a namespace is available,
// or as soon as one of its pods cannot become ready.
func (c CLI) WaitForDeployments(ctx context.Context, namespace string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		_, err := c.Run(ctx, "--namespace", namespace, "wait", "--for=condition=Available", "deployment", "--all", "--timeout=3s")
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !strings.Contains(err.Error(), "timed out") {
			return err
		}
		out, getErr := c.Run(ctx, "--namespace", namespace, "get", "pods", "--output=json")
		if getErr != nil {
			return getErr
		}
		var list pods
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return fmt.Errorf("read the pods of %s: %w", namespace, err)
		}
		if why := list.hopeless(); why != "" {
			return fmt.Errorf("namespace %s: %s (kubectl --kubeconfig %s --namespace %s describe pods says more)", namespace, why, c.Kubeconfig, namespace)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w (kubectl --kubeconfig %s --namespace %s get pods shows which)", err, c.Kubeconfig, namespace)
		}
	}
}
