package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/internal/demo/kubectl"
)

// Environment describes a demo that is up, for those who use it: the end-to-end
// tests, and people's own tools. It holds no secret.
type Environment struct {
	// Name is the cluster's, and that of its Docker network.
	Name string `json:"name"`
	// Checkout is the repository's root.
	Checkout string `json:"checkout"`
	// Kubeconfig has the cluster's address and credentials.
	Kubeconfig string `json:"kubeconfig"`
	// Registry is the registry's name, on this machine, on nodes and in pods.
	Registry string `json:"registry"`
	// GitURL is the address of the git server's repository, the same everywhere. A push
	// to its PushBranch starts a run.
	GitURL     string `json:"gitUrl"`
	PushBranch string `json:"pushBranch"`
	// Listener is the EventListener's address on this machine, ListenerInCluster that
	// in pods. It takes events of GitHub's shape of WebhookRepository, signed with what
	// the Secret WebhookSecret of its namespace has.
	Listener          string `json:"listener"`
	ListenerInCluster string `json:"listenerInCluster"`
	WebhookRepository string `json:"webhookRepository"`
	WebhookSecret     string `json:"webhookSecret"`
	// S3 is the S3 server's address on this machine, S3InCluster that in pods.
	S3          string `json:"s3"`
	S3InCluster string `json:"s3InCluster"`
	Bucket      string `json:"bucket"`
	// Programs are paths of kubectl, tkn, kind and yard.
	Programs map[string]string `json:"programs"`
	// Images are references by digest: shell, tool, builder, run, s3.
	Images map[string]string `json:"images"`
}

// Kubectl runs kubectl on the cluster.
func (e Environment) Kubectl(ctx context.Context, args ...string) (string, error) {
	return kubectl.CLI{Command: e.Programs["kubectl"], Kubeconfig: e.Kubeconfig}.Run(ctx, args...)
}

// ReadEnvironment reads the description of the demo that the settings name.
func ReadEnvironment(getenv func(string) string) (Environment, error) {
	settings, err := SettingsFrom(getenv)
	if err != nil {
		return Environment{}, err
	}
	path := filepath.Join(settings.state(), "environment.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return Environment{}, err
	}
	var e Environment
	if err := json.Unmarshal(data, &e); err != nil {
		return Environment{}, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// writeEnvironment writes the description, once the cluster is up.
func (d *Demo) writeEnvironment() error {
	e := Environment{
		Name: d.Name, Checkout: d.Checkout, Kubeconfig: d.kubeconfig(),
		Registry: d.RegistryHost(), GitURL: d.GitURL(), PushBranch: PushBranch,
		Listener: fmt.Sprintf("http://127.0.0.1:%d", d.TriggersPort), ListenerInCluster: listenerInCluster,
		WebhookRepository: WebhookRepository, WebhookSecret: WebhookSecret,
		S3: d.S3Endpoint(), S3InCluster: S3InCluster, Bucket: Bucket,
		Programs: map[string]string{},
		Images: map[string]string{
			"shell": d.inCluster.Shell, "s3": d.inCluster.S3, "tool": d.inCluster.Tool,
			"builder": d.inCluster.Builder, "run": d.inCluster.Run,
		},
	}
	for _, name := range []string{"kubectl", "tkn", "kind"} {
		path, err := d.images.program(name)
		if err != nil {
			return err
		}
		e.Programs[name] = path
	}
	e.Programs["yard"] = d.yard()
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(d.state(), "environment.json"), data, 0o644)
}
