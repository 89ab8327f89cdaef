//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/trigger/deliveries"
)

// listener is an EventListener in a namespace of its own. No queue runs there unless a
// test starts one, so that runs stay pending and can be counted.
type listener struct {
	env
	namespace, url string
	secrets        deliveries.Secrets
}

// newListener installs triggers/ with an allow-list, and waits until it answers.
func (e env) newListener(t *testing.T, allowed deliveries.Settings) listener {
	t.Helper()
	l := listener{env: e, namespace: e.namespace(t), secrets: deliveries.Secrets{}}
	for _, forge := range deliveries.Forges() {
		l.secrets[forge] = "the secret of " + string(forge)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: string(forge) + "-webhook"}, StringData: map[string]string{"secret": l.secrets[forge]}}
		if _, err := e.kube.CoreV1().Secrets(l.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.mayReadTheCluster(t)
	files := []string{
		"triggers/service-account.yaml", "triggers/role.yaml", "triggers/role-binding.yaml",
		"triggers/push.yaml", "triggers/training.yaml", "triggers/train-on-push.yaml", "triggers/trainyard.yaml",
	}
	for _, forge := range deliveries.Forges() {
		files = append(files, l.triggerFile(t, forge, allowed))
	}
	e.apply(t, l.namespace, files...)
	l.expose(t)
	l.until(t, 2*time.Minute, "the listener answers", func(ctx context.Context) (bool, string, error) {
		status, err := l.post(ctx, http.Header{"Content-Type": {"application/json"}}, []byte("{}"))
		return err == nil && status == http.StatusAccepted, fmt.Sprint(status, err), nil
	})
	return l
}

// mayReadTheCluster binds the listener's account to its role in the cluster: the binding
// of triggers/ is the demo's.
func (l listener) mayReadTheCluster(t *testing.T) {
	t.Helper()
	bindings := l.kube.RbacV1().ClusterRoleBindings()
	_, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "trainyard-listener-" + l.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "trainyard-listener"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "trainyard-listener", Namespace: l.namespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := bindings.Delete(ctx, "trainyard-listener-"+l.namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// triggerFile is a forge's Trigger with an allow-list, in a file.
func (l listener) triggerFile(t *testing.T, forge pushrun.Forge, allowed deliveries.Settings) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Checkout, "triggers", string(forge)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var trigger map[string]any
	if err := yaml.Unmarshal(text, &trigger); err != nil {
		t.Fatal(err)
	}
	expression, err := allowed.Expression()
	if err != nil {
		t.Fatal(err)
	}
	allow(t, trigger, expression)
	if text, err = yaml.Marshal(trigger); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), string(forge)+".yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// allow gives a Trigger an allow-list.
func allow(t *testing.T, trigger map[string]any, expression string) {
	t.Helper()
	for _, interceptor := range trigger["spec"].(map[string]any)["interceptors"].([]any) {
		if i := interceptor.(map[string]any); i["name"] == "allowed" {
			i["params"] = []any{map[string]any{"name": "overlays", "value": []any{map[string]any{"key": "allowed", "expression": expression}}}}
			return
		}
	}
	t.Fatalf("the Trigger has no allow-list: %v", trigger)
}

// expose makes the listener reachable from here.
func (l *listener) expose(t *testing.T) {
	t.Helper()
	service, err := l.kube.CoreV1().Services(l.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "listener"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"eventlistener": "trainyard"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := l.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	for _, address := range nodes.Items[0].Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			l.url = fmt.Sprintf("http://%s:%d", address.Address, service.Spec.Ports[0].NodePort)
		}
	}
}

// post sends one delivery and returns the status, which says nothing of runs.
func (l listener) post(ctx context.Context, header http.Header, body []byte) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header = header.Clone()
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // next door: no proxy
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, err
}

// runs are what was created, by name.
func (l listener) runs(ctx context.Context) (map[string]pushrun.Push, error) {
	list, err := l.tekton.TektonV1().PipelineRuns(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]pushrun.Push{}
	for _, run := range list.Items {
		push, _, err := pushrun.Read(&run)
		if err != nil {
			return nil, err
		}
		out[run.Name] = push
	}
	return out, nil
}

// push is a delivery of GitHub's that starts a run: a commit of its own, after another.
func (l listener) push(t *testing.T, before, commit string) deliveries.Delivery {
	t.Helper()
	d := deliveries.Table(l.secrets)[0]
	var body map[string]any
	if err := json.Unmarshal(d.Body, &body); err != nil {
		t.Fatal(err)
	}
	body["before"], body["after"] = before, commit
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	d.Body = data
	deliveries.Sign(&d, l.secrets[d.Forge])
	return d
}

// lives makes sure that the listener's pod is the first, and was never started again.
func (l listener) lives(t *testing.T) {
	t.Helper()
	pods, err := l.kube.CoreV1().Pods(l.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "eventlistener=trainyard"})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods listen, want 1", len(pods.Items))
	}
	for _, container := range pods.Items[0].Status.ContainerStatuses {
		if container.RestartCount > 0 || !container.Ready {
			t.Errorf("the listener was started %d times again: %+v", container.RestartCount, container.LastTerminationState)
		}
	}
	log := l.log(t)
	for line := range strings.Lines(log) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("the listener lacks a right: %s", line)
		}
	}
	for forge, secret := range l.secrets {
		if strings.Contains(log, secret) {
			t.Errorf("the listener's log has the secret of %s", forge)
		}
	}
}

// oneForgeEach leaves of each line of a table the delivery of one forge, by turns: all of
// them are judged without a cluster, in package trigger.
func oneForgeEach(table []deliveries.Delivery) (some []deliveries.Delivery) {
	var lines []string
	of := map[string][]deliveries.Delivery{}
	for _, d := range table {
		_, line, _ := strings.Cut(d.Name, ": ")
		if of[line] == nil {
			lines = append(lines, line)
		}
		of[line] = append(of[line], d)
	}
	for i, line := range lines {
		some = append(some, of[line][i%len(of[line])])
	}
	return some
}

// TestRunsOfDeliveries counts runs in the cluster: the listener answers 202 to most of
// what it refuses, too.
func TestRunsOfDeliveries(t *testing.T) {
	e := connect(t)
	for name, c := range map[string]struct {
		allowed deliveries.Settings
		table   func(deliveries.Secrets) []deliveries.Delivery
	}{
		"any file":   {deliveries.AnyFile(elsewhere), deliveries.Table},
		"some files": {deliveries.SomeFiles(elsewhere), deliveries.FilesTable},
	} {
		t.Run(name, func(t *testing.T) {
			l := e.newListener(t, c.allowed)
			table := oneForgeEach(c.table(l.secrets))
			want, refused := map[string]bool{}, 0
			for _, d := range table {
				if d.Run != nil {
					want[d.Run.Name] = true
				} else {
					refused++
				}
			}
			// All of it again does nothing but make good what a slow machine lost: the
			// listener waits three seconds for an interceptor, and says 202 whatever
			// comes of that.
			for round, lost := 0, -1; round < 4 && lost != l.lost(t); round++ {
				lost = l.lost(t)
				maps.Copy(want, l.send(t, table))
			}
			l.have(t, want)
			if t.Failed() {
				return
			}
			got, err := l.runs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range table {
				if d.Run == nil {
					continue
				}
				// Of several deliveries of one push, any may have made the run.
				run := got[d.Run.Name]
				if run.Commit != d.Run.Push.Commit || run.Forge != d.Run.Push.Forge || run.Repository != d.Run.Push.Repository {
					t.Errorf("%s: the run says %+v, want %+v", d.Name, run, d.Run.Push)
				}
			}
			l.lives(t)
			t.Logf("%d deliveries, of which %d are refused, made %d runs", len(table), refused, len(want))
		})
	}
}

// send sends deliveries one after the other. Where one has to start a run, that run is
// waited for, and after a few that start none a push of our own, whose run is returned:
// the listener takes everything at once, and this keeps it from being buried.
func (l listener) send(t *testing.T, table []deliveries.Delivery) (own map[string]bool) {
	t.Helper()
	own = map[string]bool{}
	waiting := 0
	for i, d := range table {
		if _, err := l.post(t.Context(), d.Header, d.Body); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if waiting++; d.Run == nil && waiting < 5 && i < len(table)-1 {
			continue
		}
		waiting = 0
		run := "trainyard-" + fmt.Sprintf("%040x", i)
		if d.Run != nil {
			run = d.Run.Name
		} else {
			d := l.push(t, pushrun.NoCommit, strings.TrimPrefix(run, "trainyard-"))
			if _, err := l.post(t.Context(), d.Header, d.Body); err != nil {
				t.Error(err)
			}
			own[run] = true
		}
		l.await(t.Context(), run)
	}
	return own
}

// await waits a while for a run to be there.
func (l listener) await(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		if _, err := l.tekton.TektonV1().PipelineRuns(l.namespace).Get(ctx, run, metav1.GetOptions{}); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lost counts the deliveries that the listener could not look at.
func (l listener) lost(t *testing.T) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(l.log(t)) {
		// What an interceptor or the check of the body says has other words.
		if strings.Contains(line, `"error"`) && strings.Contains(line, "tekton-triggers-core-interceptors") {
			n++
		}
	}
	return n
}

// log is what the listener's pod has written.
func (l listener) log(t *testing.T) string {
	t.Helper()
	pods, err := l.kube.CoreV1().Pods(l.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "eventlistener=trainyard"})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods listen, want 1", len(pods.Items))
	}
	log, err := l.kube.CoreV1().Pods(l.namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// have waits for runs of these names, and makes sure that there are no others.
func (l listener) have(t *testing.T, want map[string]bool) {
	t.Helper()
	l.until(t, 2*time.Minute, "the deliveries have their runs", func(ctx context.Context) (bool, string, error) {
		got, err := l.runs(ctx)
		if err != nil {
			return false, "", err
		}
		var missing []string
		for name := range want {
			if _, has := got[name]; !has {
				missing = append(missing, name)
			}
		}
		return len(missing) == 0, fmt.Sprintf("%d of %d runs are missing: %v", len(missing), len(want), missing), nil
	})
	got, err := l.runs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !want[name] {
			t.Errorf("there is a run %s: %+v", name, got[name])
		}
	}
}
