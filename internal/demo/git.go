package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/pause"
	"github.com/trainyard/trainyard/internal/toolimage"
)

const (
	// WebhookRepository is what the git server's repository is called in events.
	WebhookRepository = "trainyard/trainyard"
	// WebhookSecret is the name of the Secret, and its key "secret", that events are
	// signed with.
	WebhookSecret = "github-webhook"
	// PushBranch is the branch whose pushes start runs.
	PushBranch = "main"
	// demoBranch is where make demo pushes what it trains: it starts its run itself.
	demoBranch  = "demo"
	nodePortGit = 30418
)

// Git starts a git server in the cluster with one repository: pods fetch source from
// it, people push to it, and it tells the listener of their pushes.
func (d *Demo) Git(ctx context.Context, step *progress.Step) error {
	k, err := d.kubectl()
	if err != nil {
		return err
	}
	step.Doing("making its image")
	image, err := d.gitImage(ctx)
	if err != nil {
		return err
	}
	if _, err := keptSecret(ctx, k, WebhookSecret, newWebhookSecret); err != nil {
		return err
	}
	documents, err := d.gitManifests(image)
	if err != nil {
		return err
	}
	if _, err := k.Apply(ctx, []byte(documents)); err != nil {
		return err
	}
	step.Doing("waiting for the git server")
	if err := k.WaitForDeployments(ctx, SystemNamespace, 3*time.Minute); err != nil {
		return err
	}
	step.Done("%s", d.GitURL())
	return nil
}

func (d *Demo) gitManifests(image string) (string, error) {
	values := strings.NewReplacer(": IMAGE\n", ": "+image+"\n", ": GIT_URL\n", ": "+d.GitURL()+"\n",
		": LISTENER_URL\n", ": "+listenerInCluster+"\n", ": REPOSITORY\n", ": "+WebhookRepository+"\n")
	var documents []string
	for _, name := range []string{"git-data", "git-deployment", "git-service"} {
		data, err := manifest(name)
		if err != nil {
			return "", err
		}
		documents = append(documents, values.Replace(string(data)))
	}
	return strings.Join(documents, "\n---\n"), nil
}

func newWebhookSecret() map[string]string { return map[string]string{"secret": rand.Text()} }

// gitImage makes the git server's image, which is one with git and our hook, and
// pushes it, and returns it by digest.
func (d *Demo) gitImage(ctx context.Context) (string, error) {
	hook := filepath.Join(d.state(), "post-receive")
	if err := d.compile(ctx, hook, "./scripts/post-receive"); err != nil {
		return "", err
	}
	base, err := d.images.withGit(ctx)
	if err != nil {
		return "", err
	}
	image, err := addHook(base, hook)
	if err != nil {
		return "", err
	}
	client, err := d.registry()
	if err != nil {
		return "", err
	}
	digest, err := toolimage.Push(ctx, client, d.RegistryHost()+"/trainyard/git:demo", image)
	return digest.String(), err
}

// addHook adds the program to an image where the Deployment's core.hooksPath is.
func addHook(base v1.Image, program string) (v1.Image, error) {
	layer, err := ociimage.Layer(ociimage.Entry{Path: "usr/share/trainyard/hooks/post-receive", From: program, Mode: 0o755})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(base, layer)
}

// GitURL is the repository's address, on this machine and in pods.
func (d *Demo) GitURL() string { return fmt.Sprintf("git://%s:%d/trainyard.git", d.node, nodePortGit) }

// pushSource pushes the checkout's last commit and returns it.
func (d *Demo) pushSource(ctx context.Context) (commit string, dirty bool, err error) {
	commit, err = run(ctx, d.Checkout, nil, "git", "rev-parse", "HEAD")
	if err != nil {
		return "", false, fmt.Errorf("find the commit to train with (make demo needs a git clone): %w", err)
	}
	commit = strings.TrimSpace(commit)
	changed, err := run(ctx, d.Checkout, nil, "git", "status", "--porcelain", "--", "trainer", "project.toml")
	if err != nil {
		return "", false, err
	}
	for attempt := 0; ; attempt++ {
		_, err = run(ctx, d.Checkout, []string{"GIT_TERMINAL_PROMPT=0"}, "git", "push", "--quiet", "--force", d.GitURL(), commit+":refs/heads/"+demoBranch)
		if err == nil || attempt == 10 {
			return commit, changed != "", err
		}
		if err := pause.For(ctx, 500*time.Millisecond); err != nil { // the server may just have started
			return "", false, err
		}
	}
}
