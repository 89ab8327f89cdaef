package demo

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/demo/certsd"
	"github.com/trainyard/trainyard/internal/demo/cluster"
	"github.com/trainyard/trainyard/internal/demo/docker"
	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/demo/tekton"
	"github.com/trainyard/trainyard/internal/pause"
)

// Prerequisites sees to what must be on the machine.
func (d *Demo) Prerequisites(ctx context.Context, step *progress.Step) error {
	var err error
	if d.host, err = cluster.Detect("/"); err != nil {
		return err
	}
	e := d.engine()
	if e.LessRuntime != "" {
		if err := d.compile(ctx, e.LessRuntime, "./scripts/runc-less"); err != nil {
			return err
		}
	}
	said, err := e.Ensure(ctx)
	if err != nil {
		return err
	}
	if d.host.CgroupV1 {
		said += ", cgroup v1"
	}
	if d.host.NoResourceCapability {
		said += ", without CAP_SYS_RESOURCE"
	}
	step.Done("%s", said)
	return nil
}

// Cluster creates the network and the cluster.
func (d *Demo) Cluster(ctx context.Context, step *progress.Step) error {
	if err := d.network().Create(ctx); err != nil {
		return err
	}
	kind, err := d.kind()
	if err != nil {
		return err
	}
	kubectl, err := d.kubectl()
	if err != nil {
		return err
	}
	there, err := kind.Exists(ctx, d.Name)
	if err != nil {
		return err
	}
	if there && !d.clusterAnswers(ctx, kind) {
		// A cluster that was interrupted while it was made, or lost its address.
		step.Doing("the cluster that is there does not answer: making it anew")
		if err := kind.Delete(ctx, d.Name); err != nil {
			return err
		}
		there = false
	}
	if !there {
		if err := d.checkPorts(); err != nil {
			return err
		}
		config, err := cluster.Config{
			Host: d.host, Name: d.Name, Image: d.images.node(), OwnNetwork: d.images.ownNetwork(),
			Ports: map[int]int{nodePortS3: d.S3Port, nodePortTriggers: d.TriggersPort},
		}.Render(filepath.Join(d.Checkout, "kind-config.yaml"))
		if err != nil {
			return err
		}
		step.Doing("starting Kubernetes")
		if err := kind.Create(ctx, d.Name, config); err != nil {
			return err
		}
	}
	if d.images.ownNetwork() {
		_, err := kubectl.Run(ctx, "wait", "--for=jsonpath={.spec.podCIDR}", "nodes", "--all", "--timeout=60s")
		if err != nil {
			return err
		}
		nodes, err := kubectl.Run(ctx, "get", "nodes", "--output=json")
		if err != nil {
			return err
		}
		if err := d.network().ConnectPods(ctx, []byte(nodes)); err != nil {
			return err
		}
	}
	step.Doing("waiting for the nodes")
	if _, err := kubectl.Run(ctx, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=180s"); err != nil {
		return err
	}
	address, err := kubectl.Run(ctx, "get", "nodes", `--output=jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	if err != nil {
		return err
	}
	if d.node, _, _ = strings.Cut(address, " "); d.node == "" { // two of them where nodes have IPv6 too
		return fmt.Errorf("the node of cluster %s has no address", d.Name)
	}
	if there {
		step.Done("%s is there", d.Name)
	} else {
		step.Done("%s created", d.Name)
	}
	return nil
}

// clusterAnswers says whether an existing cluster can be used.
func (d *Demo) clusterAnswers(ctx context.Context, kind cluster.Kind) bool {
	if err := kind.Export(ctx, d.Name); err != nil {
		return false
	}
	kubectl, err := d.kubectl()
	if err != nil {
		return false
	}
	_, err = kubectl.Run(ctx, "get", "--raw=/readyz", "--request-timeout=20s")
	if err != nil {
		return false
	}
	// What kind does last; a cluster without it was not finished.
	_, err = kubectl.Run(ctx, "get", "storageclass", "standard")
	return err == nil
}

const (
	nodePortS3       = 30070
	nodePortTriggers = 30080
)

// Registry starts the registry, and tells nodes how to reach it.
func (d *Demo) Registry(ctx context.Context, step *progress.Step) error {
	err := d.container(ctx, "registry", d.network().Address(0).String(), fromsource.Registry, []string{
		"--volume", d.Name + "-registry:/var/lib/registry",
		"--env=OTEL_TRACES_EXPORTER=none", // it would look for a collector every few seconds
	}, nil)
	if err != nil {
		return err
	}
	nodes, err := d.nodes(ctx)
	if err != nil {
		return err
	}
	hosts, err := d.images.hosts()
	if err != nil {
		return err
	}
	files := maps.Clone(hosts)
	if files == nil {
		files = map[string][]byte{}
	}
	if files[certsd.Path(d.RegistryHost())], err = certsd.Hosts("http://" + d.RegistryHost()); err != nil {
		return err
	}
	for _, node := range nodes {
		for path, contents := range files {
			_, err := d.docker.Pipe(ctx, bytes.NewReader(contents), "exec", "--interactive", node, "sh", "-euc",
				`mkdir -p "$(dirname "$1")" && cat >"$1"`, "sh", path)
			if err != nil {
				return err
			}
		}
	}
	step.Doing("waiting for the registry")
	if err := waitForHTTP(ctx, "http://"+d.RegistryHost()+"/v2/"); err != nil {
		return err
	}
	step.Doing("finding the images of pods")
	if d.inCluster, err = d.images.cluster(ctx, step); err != nil {
		return err
	}
	return nil
}

// container starts a container of ours with a fixed address, unless it runs.
func (d *Demo) container(ctx context.Context, role, address, image string, options, args []string) error {
	name := d.Name + "-" + role
	engineImage, err := d.images.engineImage(ctx, image)
	if err != nil {
		return err
	}
	state, err := d.docker.Run(ctx, "inspect", "--format", "{{.State.Running}} {{.Config.Image}}", name)
	switch {
	case err == nil && state == "true "+engineImage:
		return nil
	case err == nil: // stopped, or of another version: its data are in a volume
		if _, err := d.docker.Run(ctx, "rm", "--force", name); err != nil {
			return err
		}
	case !docker.Missing(err):
		return err
	}
	run := append([]string{"run", "--detach", "--name", name, "--label=dev.trainyard.demo",
		"--network", d.Name, "--ip", address, "--restart=always"}, options...)
	run = append(append(run, engineImage), args...)
	_, err = d.docker.Run(ctx, run...)
	return err
}

func (d *Demo) nodes(ctx context.Context) ([]string, error) {
	out, err := d.docker.Run(ctx, "ps", "--filter", "label=io.x-k8s.kind.cluster="+d.Name, "--format", "{{.Names}}")
	return strings.Fields(out), err
}

// waitForHTTP returns when a server answers.
func waitForHTTP(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 2 * time.Second} // no proxy
	for attempt := 0; ; attempt++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err == nil {
			return response.Body.Close()
		}
		if attempt == 60 {
			return fmt.Errorf("%s does not answer: %w", url, err)
		}
		if err := pause.For(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func (d *Demo) tektonReleases(ctx context.Context) ([]tekton.Release, error) {
	var releases []tekton.Release
	for _, path := range []string{tekton.PipelinesModule, tekton.TriggersModule} {
		module, err := gomodule.Find(ctx, d.Go, filepath.Join(d.components(), "cluster"), path)
		if err != nil {
			return nil, err
		}
		releases = append(releases, tekton.Release{Module: module.Path, Version: module.Version, FS: module.FS()})
	}
	return releases, nil
}

// Tekton installs Pipelines and Triggers.
func (d *Demo) Tekton(ctx context.Context, step *progress.Step) error {
	releases, err := d.tektonReleases(ctx)
	if err != nil {
		return err
	}
	groups, err := tekton.Render(tekton.Settings{Images: d.inCluster.Tekton, ShellImage: d.inCluster.Shell}, releases...)
	if err != nil {
		return err
	}
	kubectl, err := d.kubectl()
	if err != nil {
		return err
	}
	for _, group := range groups {
		step.Doing("applying its %s", group.Name)
		documents, err := group.YAML()
		if err != nil {
			return err
		}
		if _, err := kubectl.Apply(ctx, documents); err != nil {
			return err
		}
		switch group.Name {
		case tekton.Definitions:
			if _, err := kubectl.Run(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
				return err
			}
		case tekton.Workloads:
			for _, namespace := range []string{"tekton-pipelines", "tekton-pipelines-resolvers"} {
				step.Doing("waiting for its pods in %s", namespace)
				if err := kubectl.WaitForDeployments(ctx, namespace, 5*time.Minute); err != nil {
					return err
				}
			}
		}
	}
	// Until the interceptors have said who signs for them, an event listener ends again
	// and again.
	step.Doing("waiting for the certificates of its interceptors")
	_, err = kubectl.Run(ctx, "wait", "--for=jsonpath={.spec.clientConfig.caBundle}", "clusterinterceptors", "--all", "--timeout=120s")
	if err != nil {
		return err
	}
	step.Done("%s, %s", releases[0], releases[1])
	return nil
}

// Down removes everything of ours but the cache.
func (d *Demo) Down(ctx context.Context, step *progress.Step) error {
	containers, err := d.docker.Run(ctx, "ps", "--all", "--quiet", "--filter", "network="+d.Name)
	if docker.NoEngine(err) {
		step.Done("no Docker engine runs, so nothing of ours does")
		return os.RemoveAll(d.state())
	}
	if err != nil {
		return err
	}
	ids := strings.Fields(containers)
	if len(ids) > 0 {
		if _, err := d.docker.Run(ctx, append([]string{"rm", "--force", "--volumes"}, ids...)...); err != nil {
			return err
		}
	}
	if _, err := d.docker.Run(ctx, "volume", "rm", "--force", d.Name+"-registry"); err != nil && !docker.Missing(err) {
		return err
	}
	if _, err := d.docker.Run(ctx, "network", "rm", d.Name); err != nil && !docker.Missing(err) {
		return err
	}
	if err := os.RemoveAll(d.state()); err != nil {
		return err
	}
	stopped, err := d.engine().Stop(ctx)
	if err != nil {
		return err
	}
	step.Done("%d containers removed", len(ids))
	if stopped {
		step.Done("%d containers removed, Docker stopped", len(ids))
	}
	return nil
}
