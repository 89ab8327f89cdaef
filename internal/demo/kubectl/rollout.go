package kubectl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// restarts after which a container that crashes is given up.
	restarts = 3
	// looks, one after the other, at a pod that cannot become ready. More than
	// one, since an image is asked for again, and a pod of an earlier rollout is
	// on its way out.
	looks = 5
)

// pods is what WaitForDeployments reads of kubectl's list.
type pods struct {
	Items []pod `json:"items"`
}

type pod struct {
	Metadata struct {
		Name              string `json:"name"`
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		InitContainerStatuses []container `json:"initContainerStatuses"`
		ContainerStatuses     []container `json:"containerStatuses"`
	} `json:"status"`
}

type container struct {
	Name         string `json:"name"`
	RestartCount int    `json:"restartCount"`
	State        struct {
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
	} `json:"state"`
}

// hopeless returns why a pod will not become ready by waiting, or "".
func (p pods) hopeless() string {
	for _, pod := range p.Items {
		if pod.Metadata.DeletionTimestamp != "" {
			continue
		}
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if why := container.hopeless(); why != "" {
				return "pod " + pod.Metadata.Name + ": container " + container.Name + why
			}
		}
	}
	return ""
}

func (c container) hopeless() string {
	waiting := c.State.Waiting
	if waiting == nil {
		return ""
	}
	switch waiting.Reason {
	case "CrashLoopBackOff":
		if c.RestartCount >= restarts {
			return fmt.Sprintf(" crashes (%d restarts)", c.RestartCount)
		}
	case "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return ": " + waiting.Reason + ": " + waiting.Message
	}
	return ""
}

// WaitForDeployments returns when every deployment of a namespace is available,
// or when one of its pods cannot become ready.
func (c CLI) WaitForDeployments(ctx context.Context, namespace string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for hopeless := 0; ; {
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
		why := list.hopeless()
		hopeless++
		if why == "" {
			hopeless = 0
		}
		if hopeless == looks {
			return fmt.Errorf("namespace %s: %s (kubectl --kubeconfig %s --namespace %s describe pods says more)", namespace, why, c.Kubeconfig, namespace)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w (kubectl --kubeconfig %s --namespace %s get pods shows which)", err, c.Kubeconfig, namespace)
		}
	}
}
