package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pause"
	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// pushEventFlags are the flags of push-event.
type pushEventFlags struct {
	forge, url, secretFile, gitDir string
	before, after, ref, delivery   string
	postReceive, dryRun            bool
	attempts                       int
	timeout                        time.Duration
	origin                         pushevent.Origin
}

func newPushEvent(a *app) *cobra.Command {
	f := pushEventFlags{}
	cmd := &cobra.Command{
		Use:   "push-event",
		Short: "Tell a listener of a git push, as a forge would",
		Long: `Make the event that GitHub, GitLab or Gitea sends of a push, from a git repository
on this machine, sign it with the webhook's secret, and send it: to see whether a
listener works, or to let a plain git server tell of its pushes (--post-receive).

Without --before, --after and --ref it is a push of the last commit of the branch that
is checked out. What no listener took is sent again, as the same delivery.

A listener of Tekton answers 202 to everything, also to what it then refuses for its
signature, its repository or its branch: 202 says that the event was received, not
that a run started. Whether one did, the runs say (trainyard.dev/commit).

With --post-receive each ref that was pushed is an event, of which forges tell nothing
but branches and tags. All of it ends within a minute, and what fails is said on
standard error, which git shows to who pushes; the push itself has succeeded by then.`,
		Example: `  yard push-event --forge github --repository team/llm --secret-file secret --url http://localhost:8080
  yard push-event --forge gitlab --repository team/llm --secret-file token --url https://train.example.com \
    --before HEAD~3 --after HEAD --ref refs/heads/main --sender ann
  yard push-event --forge gitea --repository team/llm --secret-file secret --url http://localhost:8080 --dry-run
  # hooks/post-receive of a bare repository
  exec yard push-event --post-receive --forge github --repository team/llm \
    --secret-file /etc/webhook/secret --url http://el-trainyard.trainyard.svc.cluster.local:8080`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, a) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.forge, "forge", "", "whose event it is: github, gitlab or gitea (also for Forgejo)")
	flags.StringVar(&f.origin.Repository, "repository", "", "`owner/name` of the repository at the forge")
	flags.StringVar(&f.url, "url", "", "address of the listener; not needed for --dry-run")
	flags.StringVar(&f.secretFile, "secret-file", "", "file with the webhook's secret")
	flags.StringVar(&f.gitDir, "git-dir", "", "git repository; empty is GIT_DIR, or else this directory")
	flags.StringVar(&f.before, "before", "", "commit before the push, or zeros for a new branch; empty is the parent of --after")
	flags.StringVar(&f.after, "after", "", "commit after the push, or zeros for a deletion; empty is HEAD")
	flags.StringVar(&f.ref, "ref", "", "what was pushed, such as refs/heads/main; empty is the branch of HEAD")
	flags.BoolVar(&f.postReceive, "post-receive", false, "read what was pushed from standard input, as git's hook post-receive gets it")
	flags.StringVar(&f.origin.Sender, "sender", "", "account that pushes; empty is yard-push-event")
	flags.StringVar(&f.origin.CloneURL, "clone-url", "", "address of the repository; empty is the one at github.com, gitlab.com or gitea.com")
	flags.StringVar(&f.origin.DefaultBranch, "default-branch", "main", "of the repository")
	flags.StringVar(&f.delivery, "delivery", "", "number of the delivery, to send one again; empty makes one up")
	flags.IntVar(&f.attempts, "attempts", 4, "times that it is sent while nobody takes it")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "of one attempt")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print headers and body instead of sending, without the secret")
	return cmd
}

// hookLimit is how long a push may wait for its events: a person sits before it.
const hookLimit = time.Minute

func (f *pushEventFlags) run(cmd *cobra.Command, a *app) error {
	ctx := cmd.Context()
	if f.attempts < 1 || f.timeout <= 0 {
		return exitcode.Errorf(exitcode.Usage, "attempts and timeout must be more than 0")
	}
	if f.postReceive && f.before+f.after+f.ref+f.delivery != "" {
		return exitcode.Errorf(exitcode.Usage, "with --post-receive, standard input says what was pushed: give none of --before, --after, --ref and --delivery")
	}
	t, err := f.teller(a)
	if err != nil {
		return err
	}
	var updates []pushevent.Update
	if f.postReceive {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hookLimit)
		defer cancel()
		updates, err = pushevent.ReadUpdates(a.In)
	} else {
		updates, err = f.update(t.Repository)
	}
	if err != nil {
		return err
	}
	if f.dryRun {
		for _, u := range updates {
			d, _, err := t.Make(ctx, u, f.delivery)
			if err != nil {
				return err
			}
			if _, err := d.WriteTo(a.Out); err != nil {
				return err
			}
		}
		return nil
	}
	told, err := t.TellAll(ctx, updates, f.delivery)
	// What was taken is said even when something else was not.
	return errors.Join(err, a.print(told, func(w io.Writer) { f.report(w, told) }))
}

func (f *pushEventFlags) teller(a *app) (pushevent.Teller, error) {
	f.origin.Forge = pushrun.Forge(f.forge)
	t := pushevent.Teller{
		Origin: f.origin, Random: rand.Reader,
		Sender: pushevent.Sender{
			Client: pushevent.NewClient(f.timeout, nil), Attempts: f.attempts, Pause: 500 * time.Millisecond, Sleep: pause.For,
		},
	}
	if err := t.Origin.Check(); err != nil {
		return t, err
	}
	if f.secretFile == "" {
		return t, exitcode.Errorf(exitcode.Usage, "give --secret-file: a listener must not take events without one")
	}
	var err error
	if f.url != "" || !f.dryRun {
		if t.URL, err = pushevent.Address(f.url); err != nil {
			return t, err
		}
	}
	if t.Secret, err = pushevent.ReadSecret(f.secretFile); err != nil {
		return t, err
	}
	t.Repository, err = pushevent.Open(cmp.Or(f.gitDir, a.Getenv("GIT_DIR"), "."))
	return t, err
}

// update is what the flags say was pushed.
func (f *pushEventFlags) update(repo *git.Repository) ([]pushevent.Update, error) {
	u := pushevent.Update{Before: f.before, After: f.after, Ref: f.ref}
	if u.Ref == "" {
		head, err := repo.Reference(plumbing.HEAD, false)
		if err != nil || head.Type() != plumbing.SymbolicReference {
			return nil, exitcode.Errorf(exitcode.Usage, "no branch is checked out: give --ref refs/heads/…")
		}
		u.Ref = head.Target().String()
	}
	var err error
	if u.After, err = resolve(repo, "after", cmp.Or(u.After, "HEAD")); err != nil {
		return nil, err
	}
	switch {
	case u.Before != "":
		u.Before, err = resolve(repo, "before", u.Before)
	case u.Deleted():
		u.Before, err = resolve(repo, "before", "HEAD")
	default:
		u.Before = pushrun.NoCommit
		if commit, lookErr := repo.CommitObject(plumbing.NewHash(u.After)); lookErr == nil && commit.NumParents() > 0 {
			u.Before = commit.ParentHashes[0].String()
		}
	}
	return []pushevent.Update{u}, err
}

// resolve returns the commit that a revision names.
func resolve(repo *git.Repository, flag, revision string) (string, error) {
	if revision == pushrun.NoCommit {
		return revision, nil
	}
	hash, err := repo.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "%s: %.80q is no commit of the repository: %w", flag, revision, err)
	}
	return hash.String(), nil
}

func (f *pushEventFlags) report(w io.Writer, told []pushevent.Told) {
	for _, one := range told {
		fmt.Fprintf(w, "%s of %s: %s received delivery %s (%d)\n", one.Event, one.Ref, f.url, one.Delivery, one.Answer.Status)
		if !one.Deleted() {
			fmt.Fprintf(w, "  that is no run yet: kubectl get pipelineruns --selector trainyard.dev/commit=%s\n", one.After)
		}
	}
}
