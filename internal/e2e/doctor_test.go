//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDoctorNamesWhatHoldsARunBack(t *testing.T) {
	t.Parallel()
	e := connect(t)
	tests := map[string]struct {
		step pipelinev1.Step
		want []string
	}{
		"a request beyond the node": {
			step: pipelinev1.Step{ComputeResources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("640")},
			}},
			want: []string{"640 CPU", "free", "most is held by", "kube-system/"},
		},
		"a Secret that is not there": {
			step: pipelinev1.Step{Env: []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "forgotten"}, Key: "token"},
			}}}},
			want: []string{"forgotten"},
		},
		"an image that is not there": {
			step: pipelinev1.Step{Image: e.Registry + "/nothing@sha256:" + strings.Repeat("0", 64)},
			want: []string{"/nothing"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := e.namespace(t)
			step := test.step
			step.Name, step.Command, step.SecurityContext = "work", []string{"true"}, restricted()
			if step.Image == "" {
				step.Image = e.Images["shell"]
			}
			_, err := e.tekton.TektonV1().PipelineRuns(namespace).Create(t.Context(), &pipelinev1.PipelineRun{
				ObjectMeta: metav1.ObjectMeta{Name: "stuck"},
				Spec: pipelinev1.PipelineRunSpec{
					TaskRunTemplate: nonroot(),
					PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{
						Name: "work", TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{Steps: []pipelinev1.Step{step}}},
					}}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e.until(t, 2*time.Minute, "doctor finds the problem", func(ctx context.Context) (bool, string, error) {
				said, err := e.try(ctx, t.TempDir(), nil, e.Programs["yard"], "doctor", "stuck", "--namespace="+namespace, "--kubeconfig="+e.Kubeconfig)
				var exit *exec.ExitError
				if err == nil || !errors.As(err, &exit) || exit.ExitCode() != 1 {
					return false, said, nil
				}
				for _, part := range test.want {
					if !strings.Contains(said, part) {
						return false, "no " + part + " in:\n" + said, nil
					}
				}
				return true, said, nil
			})
		})
	}
}

// The listener is installed without its ClusterRoleBinding and without a queue, and its
// settings are those of the files: a forge would be answered by nobody.
func TestDoctorNamesWhatKeepsAPushFromStartingARun(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	e.apply(t, namespace, "triggers/service-account.yaml", "triggers/role.yaml", "triggers/role-binding.yaml", "triggers/trainyard.yaml",
		"triggers/github.yaml", "triggers/push.yaml", "triggers/training.yaml", "triggers/train-on-push.yaml")
	e.secret(t, namespace, "github-webhook", secretForm{corev1.SecretTypeOpaque, map[string]string{"secret": "s3cret"}})
	want := []string{
		"deployment el-trainyard has no pod that is ready: nobody answers the forge",
		"ServiceAccount trainyard-listener lacks rights that it needs",
		"get, list, watch clusterinterceptors.triggers.tekton.dev in the cluster",
		"there is no deployment trainyard-queue",
		"TriggerBinding training: builder-image is still the placeholder",
		"Trigger github takes the pushes that are signed with Secret github-webhook",
	}
	e.until(t, 2*time.Minute, "doctor finds all of it", func(ctx context.Context) (bool, string, error) {
		said, err := e.try(ctx, t.TempDir(), nil, e.Programs["yard"], "doctor", "--namespace="+namespace, "--kubeconfig="+e.Kubeconfig)
		var exit *exec.ExitError
		if err == nil || !errors.As(err, &exit) || exit.ExitCode() != 1 {
			return false, said, nil
		}
		for _, part := range want {
			if !strings.Contains(said, part) {
				return false, "no " + part + " in:\n" + said, nil
			}
		}
		// The other rights are given: what is not said is as right as what is.
		return !strings.Contains(said, "in the namespace"), said, nil
	})
}
