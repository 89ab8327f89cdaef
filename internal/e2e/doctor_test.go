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
