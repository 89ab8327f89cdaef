package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/demo/cluster"
	"github.com/trainyard/trainyard/internal/demo/docker"
	"github.com/trainyard/trainyard/internal/demo/engine"
	"github.com/trainyard/trainyard/internal/demo/kubectl"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Demo brings a cluster up and down.
type Demo struct {
	Settings
	// Out gets what a person reads.
	Out io.Writer
	// Log prints the steps.
	Log *progress.Log

	docker docker.CLI
	host   cluster.Host
	images images
	// inCluster are the images that pods name, by digest.
	inCluster clusterImages
	// node is the address of a node, for this machine and for pods.
	node string
	// run is the name of the PipelineRun.
	run string
}

// images is a source of images.
type images interface {
	// prepare finds or makes what is needed before there is a cluster: programs
	// for this machine, the node image, the registry's image.
	prepare(ctx context.Context, step *progress.Step) error
	// program returns the path of a program for this machine: kind, kubectl, tkn.
	program(name string) (string, error)
	// node is the name of the node image in the Docker engine.
	node() string
	// engineImage returns the name of an image of the Docker engine.
	engineImage(ctx context.Context, name string) (string, error)
	// ownNetwork says that the node image has no CNI of its own.
	ownNetwork() bool
	// hosts are files of nodes, by their paths, that say how registries are
	// reached.
	hosts() (map[string][]byte, error)
	// withGit returns an image that has git in it, once cluster was called.
	withGit(ctx context.Context) (v1.Image, error)
	// cluster finds or pushes the images that pods use.
	cluster(ctx context.Context, step *progress.Step) (clusterImages, error)
}

// clusterImages are references by digest.
type clusterImages struct {
	// Tekton's images by the import paths of their programs.
	Tekton map[string]string
	// Shell has sh, and can run as root.
	Shell string
	// S3 is the S3 server's.
	S3 string
	// Builder and Run are the Buildpacks builder and the image that what it
	// builds runs on.
	Builder, Run string
	// Tool is yard's.
	Tool string
}

// New returns a demo with the settings.
func New(settings Settings, out io.Writer, log *progress.Log) *Demo {
	return &Demo{Settings: settings, Out: out, Log: log}
}

func (d *Demo) platform() v1.Platform {
	return v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
}

func (d *Demo) network() cluster.Network {
	return cluster.Network{Docker: d.docker, Name: d.Name, Subnet: d.Subnet}
}

// RegistryHost is the name of the demo's registry, the same on this machine, on
// nodes and in pods: an address of the Docker network, since no host name means
// the same in all three without changes to the machine.
func (d *Demo) RegistryHost() string { return d.network().Address(0).String() + ":5000" }

func (d *Demo) registry() (*registryclient.Client, error) {
	// The registry is next door: a proxy to the internet could not reach it.
	direct := &http.Transport{ForceAttemptHTTP2: false, MaxIdleConnsPerHost: 4}
	return registryclient.New(registryclient.Options{Insecure: []string{d.RegistryHost()}, Transport: direct, UserAgent: "trainyard-demo"})
}

func (d *Demo) kind() (cluster.Kind, error) {
	command, err := d.images.program("kind")
	return cluster.Kind{Command: command, Network: d.Name, Kubeconfig: d.kubeconfig()}, err
}

func (d *Demo) kubectl() (kubectl.CLI, error) {
	command, err := d.images.program("kubectl")
	return kubectl.CLI{Command: command, Kubeconfig: d.kubeconfig()}, err
}

func (d *Demo) engine() engine.Engine {
	e := engine.Engine{
		Docker:  d.docker,
		State:   filepath.Join(d.Cache, "demo"),
		Install: d.installDebian,
		Root:    os.Geteuid() == 0,
	}
	if d.host.NoResourceCapability {
		e.LessRuntime = filepath.Join(d.Cache, "demo", "runc-less")
	}
	return e
}

// installDebian installs packages through the script that all parts of the
// project use.
func (d *Demo) installDebian(ctx context.Context, commands ...string) error {
	_, err := run(ctx, d.Checkout, nil, filepath.Join(d.Checkout, "scripts/install-debian.sh"), commands...)
	if err != nil {
		return fmt.Errorf("install Debian packages (%s): %w", strings.Join(commands, " "), err)
	}
	return nil
}
