package trigger_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/trigger/deliveries"
)

// What yard push-event makes of a real repository is taken as what the forges send.
func TestPushesOfARealRepositoryStartRuns(t *testing.T) {
	dir := t.TempDir()
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	commit := func(file, message string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(message), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Add(file); err != nil {
			t.Fatal(err)
		}
		hash, err := tree.Commit(message, &git.CommitOptions{Author: &object.Signature{Name: "Ann", Email: "ann@example.com", When: time.Unix(1_700_000_000, 0)}})
		if err != nil {
			t.Fatal(err)
		}
		return hash.String()
	}
	first := commit("trainer/train.yaml", "Begin")
	readme := commit("README.md", "Describe")
	longer := commit("trainer/train.yaml", "Train for longer")
	skipped := commit("trainer/train.yaml", "Say it otherwise\n\n[skip train]")

	l := listener(t, deliveries.SomeFiles(source))
	for name, tc := range map[string]struct {
		before, after, ref string
		starts             bool
	}{
		"a new branch":            {pushrun.NoCommit, readme, "refs/heads/main", true},
		"a README":                {first, readme, "refs/heads/main", false},
		"a setting":               {readme, longer, "refs/heads/main", true},
		"both":                    {first, longer, "refs/heads/main", true},
		"one that says skip":      {longer, skipped, "refs/heads/main", false},
		"back by a commit":        {longer, readme, "refs/heads/main", true},
		"a branch nobody allowed": {readme, longer, "refs/heads/next", false},
		"a tag":                   {pushrun.NoCommit, longer, "refs/tags/v1", false},
		"a deletion":              {longer, pushrun.NoCommit, "refs/heads/main", false},
	} {
		for _, forge := range deliveries.Forges() {
			t.Run(name+" on "+string(forge), func(t *testing.T) {
				opened, err := pushevent.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				change, err := pushevent.Read(t.Context(), opened, pushevent.Update{Before: tc.before, After: tc.after, Ref: tc.ref}, 20)
				if err != nil {
					t.Fatal(err)
				}
				origin := pushevent.Origin{Forge: forge, Repository: deliveries.Repository, Sender: "ann"}
				d, err := pushevent.New(origin, change, []byte(secrets()[forge]), "delivery-1")
				if err != nil {
					t.Fatal(err)
				}
				header := http.Header{}
				for key, value := range d.Header {
					header.Set(key, value)
				}
				out := l.Deliver(t.Context(), header, d.Body)
				if got := len(out.Runs) == 1; got != tc.starts {
					t.Fatalf("starts a run: %v, want %v: %.500v", got, tc.starts, out.Refused[string(forge)])
				}
				if !tc.starts {
					return
				}
				r, err := run(t, out.Runs[string(forge)])
				if err != nil {
					t.Fatalf("%v, %v", slices.Collect(maps.Keys(out.Runs)), err)
				}
				want := pushrun.Push{Forge: forge, Repository: deliveries.Repository, Branch: "main", Commit: tc.after, Before: tc.before, Sender: "ann", Delivery: "delivery-1"}
				if push, _, err := pushrun.Read(r); err != nil || push != want {
					t.Errorf("the run says %+v, %v, want %+v", push, err, want)
				}
			})
		}
	}
}
