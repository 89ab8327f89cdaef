package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/demo/fromsource"
)

// gitServer starts a git server with one repository, for pods to fetch source
// from and for people to push to: it is on the demo's network alone.
func (d *Demo) gitServer(ctx context.Context) error {
	err := d.container(ctx, "git", d.GitHost(), fromsource.Git,
		[]string{"--volume", d.Name + "-git:/srv/git", "--user=0:0", "--entrypoint=/usr/bin/git", "--env=HOME=/root"},
		[]string{"-c", "safe.directory=*", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--base-path=/srv/git", "/srv/git"})
	if err != nil {
		return err
	}
	_, err = d.docker.Run(ctx, "exec", d.Name+"-git", "git", "init", "--quiet", "--bare", "--initial-branch=main", "/srv/git/"+repository)
	if err != nil {
		return fmt.Errorf("make the git repository: %w", err)
	}
	return nil
}

// repository is the git server's only one.
const repository = "trainyard.git"

// GitURL is the repository's address, on this machine and in pods.
func (d *Demo) GitURL() string { return "git://" + d.GitHost() + "/" + repository }

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
		_, err = run(ctx, d.Checkout, []string{"GIT_TERMINAL_PROMPT=0"}, "git", "push", "--quiet", "--force", d.GitURL(), commit+":refs/heads/main")
		if err == nil || attempt == 10 {
			return commit, changed != "", err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil { // the server may just have started
			return "", false, err
		}
	}
}
