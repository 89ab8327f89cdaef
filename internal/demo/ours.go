package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/toolimage"
)

func (d *Demo) yard() string { return filepath.Join(d.state(), "yard") }

// compile makes a program of this repository, static, for this machine.
func (d *Demo) compile(ctx context.Context, program, pkg string) error {
	_, err := run(ctx, d.Checkout, []string{"CGO_ENABLED=0"}, d.Go, "build", "-trimpath", "-buildvcs=false", "-o", program, pkg)
	return err
}

// createBuilder makes a builder of the lifecycle that was built and Debian
// packages, and pushes it to the demo's registry, unless it is there.
func (d *Demo) createBuilder(ctx context.Context, lifecycle string) (builder, runImage string, err error) {
	buildpack := filepath.Join(d.state(), "go-offline")
	if err := d.compile(ctx, buildpack, "./buildpacks/go-offline/cmd/go-offline"); err != nil {
		return "", "", err
	}
	args := []string{
		"builder", "create", "--output=json", "--repository=" + d.RegistryHost() + "/trainyard",
		"--insecure-registry=" + d.RegistryHost(), "--lifecycle-dir=" + lifecycle, "--buildpack=" + buildpack,
		"--cache=" + filepath.Join(d.Cache, "builder"),
	}
	if d.DebianMirror != "" {
		args = append(args, "--debian-mirror="+d.DebianMirror)
	}
	out, err := run(ctx, d.Checkout, d.noProxy(), d.yard(), args...)
	if err != nil {
		return "", "", fmt.Errorf("make the builder: %w", err)
	}
	var result struct{ Builder, Run string }
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Builder == "" || result.Run == "" {
		return "", "", fmt.Errorf("make the builder: yard answers %q: %w", out, err)
	}
	return result.Builder, result.Run, nil
}

// noProxy keeps programs that we start from asking a proxy for what is next door.
func (d *Demo) noProxy() []string {
	host := d.network().Address(0).String()
	return []string{"NO_PROXY=" + os.Getenv("NO_PROXY") + "," + host, "no_proxy=" + os.Getenv("no_proxy") + "," + host}
}

// toolImage makes yard's image and pushes it, and returns it by digest.
func (d *Demo) toolImage(ctx context.Context) (string, error) {
	certificates, err := fromsource.DefaultCertificates()
	if err != nil {
		return "", err
	}
	image, err := toolimage.Make(ctx, toolimage.Source{Go: d.Go, Module: d.Checkout, Platform: d.platform(), Version: "demo"}, certificates, time.Unix(0, 0))
	if err != nil {
		return "", err
	}
	client, err := d.registry()
	if err != nil {
		return "", err
	}
	digest, err := toolimage.Push(ctx, client, d.RegistryHost()+"/trainyard/yard:demo", image)
	return digest.String(), err
}

// bundleLimit is what a ConfigMap can hold, with room for what surrounds it.
const bundleLimit = 900 << 10

// Ours installs what this repository is about: its namespace, accounts, tasks,
// pipelines and triggers.
func (d *Demo) Ours(ctx context.Context, step *progress.Step) error {
	k, err := d.kubectl()
	if err != nil {
		return err
	}
	step.Doing("making yard's image")
	if d.inCluster.Tool, err = d.toolImage(ctx); err != nil {
		return err
	}
	if err := d.PrepareNamespace(ctx, Namespace); err != nil {
		return err
	}
	step.Doing("applying accounts, tasks, pipelines and triggers")
	folders := []string{
		"sa", "tasks", "pipelines/train-and-promote.yaml", "pipelines/train-pinned.yaml",
		"triggers", "triggers/queue", "triggers/prune", "deploy/kind/listener.yaml",
	}
	for i, folder := range folders {
		folders[i] = filepath.Join(d.Checkout, folder)
	}
	documents, err := run(ctx, d.Checkout, nil, d.yard(),
		append([]string{"render", "--tool-image=" + d.inCluster.Tool, "--namespace=" + Namespace}, folders...)...)
	if err != nil {
		return err
	}
	objects, err := d.pushSettings().patch([]byte(documents))
	if err != nil {
		return err
	}
	webhook, err := keptSecret(ctx, k, WebhookSecret, newWebhookSecret)
	if err != nil {
		return err
	}
	if err := applySecret(ctx, k, Namespace, WebhookSecret, webhook); err != nil {
		return err
	}
	if _, err := k.Apply(ctx, objects); err != nil {
		return err
	}
	step.Doing("waiting for the listener")
	if _, err := k.Run(ctx, "--namespace", Namespace, "wait", "--for=condition=Available", "eventlisteners/trainyard", "--timeout=120s"); err != nil {
		return err
	}
	if err := k.WaitForDeployments(ctx, Namespace, 3*time.Minute); err != nil {
		return err
	}
	step.Done("tasks, pipelines and triggers in namespace %s", Namespace)
	return nil
}

// PrepareNamespace makes a namespace that enforces the restricted Pod Security
// Standard, with what the demo's cluster has and tasks read: the store, its
// account, and the CA certificates of this machine.
func (d *Demo) PrepareNamespace(ctx context.Context, namespace string) error {
	k, err := d.kubectl()
	if err != nil {
		return err
	}
	account, err := d.s3Account(ctx, k)
	if err != nil {
		return err
	}
	objects := []any{
		map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": namespace, "labels": map[string]string{
				"pod-security.kubernetes.io/enforce": "restricted",
			}},
		},
		configMap(namespace, "trainyard-store", map[string]string{"endpoint": S3InCluster, "region": region, "bucket": Bucket}),
	}
	if bundle := hostCertificates(); bundle != "" {
		objects = append(objects, configMap(namespace, "trainyard-ca", map[string]string{"ca-bundle.crt": bundle}))
	}
	for _, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := k.Apply(ctx, data); err != nil {
			return err
		}
	}
	return applySecret(ctx, k, namespace, "s3-credentials", account.data())
}

func configMap(namespace, name string, data map[string]string) any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]string{"name": name, "namespace": namespace},
	}
}

// hostCertificates are the CA certificates that this machine trusts: a host behind
// a proxy of its own has one more than images have. "" where there are none.
func hostCertificates() string {
	for _, file := range []string{os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt"} {
		data, err := os.ReadFile(file)
		if err == nil && len(data) > 0 && len(data) < bundleLimit {
			return string(data)
		}
	}
	return ""
}
