package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fake is a kubectl that keeps its calls and runs a script, in a folder of its
// own. $n is the number of the call, from 1.
type fake struct {
	CLI
	t      *testing.T
	folder string
}

func newFake(t *testing.T, script string) fake {
	t.Helper()
	f := fake{t: t, folder: t.TempDir()}
	f.CLI = CLI{Command: filepath.Join(f.folder, "kubectl"), Kubeconfig: "/state/kubeconfig"}
	text := "#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit\necho \"$*\" >>calls\nn=$(wc -l <calls)\n" + script
	if err := os.WriteFile(f.Command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fake) calls() []string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.folder, "calls"))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestRunNamesTheClusterAndReturnsWhatIsPrinted(t *testing.T) {
	f := newFake(t, "printf 'a\\n\\n'; echo warning >&2")
	got, err := f.Run(t.Context(), "get", "nodes")
	if got != "a\n\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"--kubeconfig /state/kubeconfig get nodes"}, f.calls()); diff != "" {
		t.Error(diff)
	}
}

func TestApplyGivesDocumentsOnStandardInput(t *testing.T) {
	f := newFake(t, "exec cat")
	got, err := f.Apply(t.Context(), []byte("kind: Secret\n"))
	if got != "kind: Secret\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	want := []string{"--kubeconfig /state/kubeconfig apply --server-side --force-conflicts --field-manager=trainyard-demo --filename=-"}
	if diff := cmp.Diff(want, f.calls()); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureSaysWhatKubectlSays(t *testing.T) {
	f := newFake(t, `echo 'Error from server (NotFound): secrets "s3-root" not found' >&2; exit 1`)
	_, err := f.Run(t.Context(), "--namespace", "n", "get", "secret", "s3-root")
	if err == nil || !strings.Contains(err.Error(), `exit status 1: Error from server (NotFound): secrets "s3-root" not found`) {
		t.Errorf("error %v", err)
	}
	if !Missing(err) || Missing(nil) || Missing(errors.New("kubectl: not found")) {
		t.Error("a missing object is not told from other errors")
	}
}

func TestAnInterruptGivesItsCause(t *testing.T) {
	f := newFake(t, "exec sleep 60")
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	time.AfterFunc(50*time.Millisecond, func() { cancel(interrupt) })
	if _, err := f.Run(ctx, "get", "nodes"); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
}

// podList is what kubectl prints of one pod with one container.
func podList(container string) string {
	return `{"items": [{"metadata": {"name": "s3-0"}, "status": {"containerStatuses": [` + container + `]}}]}`
}

func TestHopeless(t *testing.T) {
	waiting := func(reason, message string) string {
		return `{"name": "s3", "restartCount": 0, "state": {"waiting": {"reason": "` + reason + `", "message": "` + message + `"}}}`
	}
	crashing := func(restarts string) string {
		return `{"name": "s3", "restartCount": ` + restarts + `, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}`
	}
	tests := map[string]struct{ list, want string }{
		"no pods":              {`{"items": []}`, ""},
		"a pod that is new":    {`{"items": [{"metadata": {"name": "s3-0"}, "status": {}}]}`, ""},
		"it runs":              {podList(`{"name": "s3", "state": {"running": {}}}`), ""},
		"it ended":             {podList(`{"name": "s3", "restartCount": 9, "state": {"terminated": {"exitCode": 1}}}`), ""},
		"it is made":           {podList(waiting("ContainerCreating", "")), ""},
		"it waits for another": {podList(waiting("PodInitializing", "")), ""},
		"one pull has failed":  {podList(waiting("ErrImagePull", "not found")), ""},
		"pulls have failed":    {podList(waiting("ImagePullBackOff", "Back-off pulling image")), "pod s3-0: container s3: ImagePullBackOff: Back-off pulling image"},
		"no image's name":      {podList(waiting("InvalidImageName", "couldn't parse")), "pod s3-0: container s3: InvalidImageName: couldn't parse"},
		"a missing secret":     {podList(waiting("CreateContainerConfigError", "secret \\\"x\\\" not found")), `pod s3-0: container s3: CreateContainerConfigError: secret "x" not found`},
		"no such program":      {podList(waiting("RunContainerError", "exec: not found")), "pod s3-0: container s3: RunContainerError: exec: not found"},
		"it has crashed twice": {podList(crashing("2")), ""},
		"it crashes":           {podList(crashing("3")), "pod s3-0: container s3 crashes (3 restarts)"},
		"it crashes for long":  {podList(crashing("12")), "pod s3-0: container s3 crashes (12 restarts)"},
		"an init container": {
			`{"items": [{"metadata": {"name": "s3-0"}, "status": {"initContainerStatuses": [` + crashing("4") + `], "containerStatuses": [` + waiting("PodInitializing", "") + `]}}]}`,
			"pod s3-0: container s3 crashes (4 restarts)",
		},
		"it is on its way out": {
			`{"items": [{"metadata": {"name": "s3-0", "deletionTimestamp": "2026-11-30T12:00:00Z"}, "status": {"containerStatuses": [` + waiting("ImagePullBackOff", "x") + `]}}]}`, "",
		},
		"the second pod": {
			`{"items": [{"metadata": {"name": "a"}, "status": {}}, {"metadata": {"name": "b"}, "status": {"containerStatuses": [{"name": "x", "state": {"running": {}}}, ` + crashing("3") + `]}}]}`,
			"pod b: container s3 crashes (3 restarts)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var list pods
			if err := json.Unmarshal([]byte(test.list), &list); err != nil {
				t.Fatal(err)
			}
			if got := list.hopeless(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

const (
	// what kubectl wait says of a deployment that is not available in time.
	timedOut = `echo 'error: timed out waiting for the condition on deployments/s3' >&2; exit 1`
	backOff  = `{"name": "s3", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}}`
	runs     = `{"name": "s3", "state": {"running": {}}}`
)

func TestWaitForDeployments(t *testing.T) {
	const wait = "--kubeconfig /state/kubeconfig --namespace sys wait --for=condition=Available deployment --all --timeout=3s"
	const get = "--kubeconfig /state/kubeconfig --namespace sys get pods --output=json"
	tests := map[string]struct {
		script  string
		timeout time.Duration
		calls   []string
		wantErr string
	}{
		"available at once": {script: "", calls: []string{wait}},
		"available later": {
			script: `case "$*" in *wait*) [ "$n" -gt 2 ] || { ` + timedOut + `; };; *) echo '` + podList(runs) + `';; esac`,
			calls:  []string{wait, get, wait},
		},
		"pulled at the fifth time": {
			script: `case "$*" in *wait*) [ "$n" -gt 8 ] || { ` + timedOut + `; };; *) echo '` + podList(backOff) + `';; esac`,
			calls:  []string{wait, get, wait, get, wait, get, wait, get, wait},
		},
		"never pulled": {
			script:  `case "$*" in *wait*) ` + timedOut + `;; *) echo '` + podList(backOff) + `';; esac`,
			calls:   []string{wait, get, wait, get, wait, get, wait, get, wait, get},
			wantErr: "namespace sys: pod s3-0: container s3: ImagePullBackOff: Back-off (kubectl --kubeconfig /state/kubeconfig --namespace sys describe pods says more)",
		},
		"in vain now and then": {
			script: `case "$*" in *wait*) [ "$n" -gt 22 ] || { ` + timedOut + `; };; *) if [ $((n % 4)) = 0 ]; then echo '` + podList(backOff) + `'; else echo '` + podList(runs) + `'; fi;; esac`,
			calls:  []string{wait, get, wait, get, wait, get, wait, get, wait, get, wait, get, wait, get, wait, get, wait, get, wait, get, wait, get, wait},
		},
		"not in time": {
			script:  `case "$*" in *wait*) ` + timedOut + `;; *) echo '` + podList(runs) + `';; esac`,
			timeout: time.Nanosecond,
			calls:   []string{wait, get},
			wantErr: "timed out waiting for the condition on deployments/s3 (kubectl --kubeconfig /state/kubeconfig --namespace sys get pods shows which)",
		},
		"no deployment":       {script: `echo 'error: no matching resources found' >&2; exit 1`, calls: []string{wait}, wantErr: "no matching resources found"},
		"no cluster":          {script: `echo 'connection refused' >&2; exit 1`, calls: []string{wait}, wantErr: "connection refused"},
		"pods are not listed": {script: `case "$*" in *wait*) ` + timedOut + `;; *) echo forbidden >&2; exit 1;; esac`, calls: []string{wait, get}, wantErr: "forbidden"},
		"pods are no JSON":    {script: `case "$*" in *wait*) ` + timedOut + `;; *) echo warning;; esac`, calls: []string{wait, get}, wantErr: "read the pods of sys"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, test.script)
			timeout := test.timeout
			if timeout == 0 {
				timeout = time.Minute
			}
			err := f.WaitForDeployments(t.Context(), "sys", timeout)
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
			if diff := cmp.Diff(test.calls, f.calls()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWaitForDeploymentsIsInterrupted(t *testing.T) {
	f := newFake(t, "exec sleep 60")
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	time.AfterFunc(50*time.Millisecond, func() { cancel(interrupt) })
	if err := f.WaitForDeployments(ctx, "sys", time.Minute); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
}
