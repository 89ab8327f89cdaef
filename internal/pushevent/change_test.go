package pushevent_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
)

const (
	none      = pushrun.NoCommit
	emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904" // git has it everywhere
)

func read(t *testing.T, r repo, u pushevent.Update, limit int) (pushevent.Change, error) {
	t.Helper()
	opened, err := pushevent.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	return pushevent.Read(t.Context(), opened, u, limit)
}

// story is a repository in which all kinds of things have happened.
type story struct {
	repo
	first, renamed, merged, side, rewritten, tag string
}

func newStory(t *testing.T) story {
	t.Helper()
	s := story{repo: newRepo(t)}
	s.write(t, "README.md", "first\n")
	s.write(t, "trainer/main.go", "package main\n")
	s.write(t, "trainer/old name.go", strings.Repeat("package main // the same\n", 20))
	s.first = s.commit(t, "Begin\n\nWith a body.")
	s.git(t, "mv", "trainer/old name.go", "trainer/new\tname.go")
	s.write(t, "README.md", "second\n")
	s.git(t, "rm", "-q", "trainer/main.go")
	s.renamed = s.commit(t, "Rename")
	s.git(t, "checkout", "-q", "-b", "side", s.first)
	s.write(t, "trainer/side.go", "package main\n")
	s.side = s.commit(t, "Side")
	s.git(t, "checkout", "-q", "main")
	s.git(t, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
	s.merged = s.head(t)
	s.git(t, "tag", "-a", "-m", "Release one", "v1", s.renamed)
	s.tag = s.git(t, "rev-parse", "v1")
	s.git(t, "tag", "light", s.renamed)
	s.git(t, "checkout", "-q", "-b", "rewritten", s.first)
	s.write(t, "README.md", "otherwise\n")
	s.rewritten = s.commit(t, "Otherwise")
	s.git(t, "checkout", "-q", "main")
	return s
}

// filesOf is what git itself says that a commit changed against its first parent.
func (r repo) filesOf(t *testing.T, commit string) (added, modified, removed []string) {
	t.Helper()
	trees := append(strings.Fields(r.git(t, "log", "-1", "--format=%P "+emptyTree, commit))[:1:1], commit)
	out := r.git(t, append([]string{"diff-tree", "-r", "-z", "--no-renames", "--name-status"}, trees...)...)
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	added, modified, removed = []string{}, []string{}, []string{}
	for i := 0; i+1 < len(fields); i += 2 {
		switch fields[i] {
		case "A":
			added = append(added, fields[i+1])
		case "D":
			removed = append(removed, fields[i+1])
		default:
			modified = append(modified, fields[i+1])
		}
	}
	return added, modified, removed
}

func TestAChangeIsWhatGitSaysItIs(t *testing.T) {
	s := newStory(t)
	tests := map[string]struct {
		update  pushevent.Update
		log     []string // of git log
		forced  bool
		head    string
		base    string
		message string
	}{
		"one commit":                 {pushevent.Update{Before: s.first, After: s.renamed, Ref: "refs/heads/main"}, []string{s.first + ".." + s.renamed}, false, s.renamed, "", ""},
		"a merge":                    {pushevent.Update{Before: s.renamed, After: s.merged, Ref: "refs/heads/main"}, []string{s.renamed + ".." + s.merged}, false, s.merged, "", ""},
		"nothing":                    {pushevent.Update{Before: s.merged, After: s.merged, Ref: "refs/heads/main"}, []string{s.merged + ".." + s.merged}, false, s.merged, "", ""},
		"another history":            {pushevent.Update{Before: s.merged, After: s.rewritten, Ref: "refs/heads/main"}, []string{s.merged + ".." + s.rewritten}, true, s.rewritten, "", ""},
		"back by a commit":           {pushevent.Update{Before: s.merged, After: s.renamed, Ref: "refs/heads/main"}, []string{s.merged + ".." + s.renamed}, true, s.renamed, "", ""},
		"a new branch":               {pushevent.Update{Before: none, After: s.merged, Ref: "refs/heads/main"}, []string{s.merged, "^side", "^rewritten"}, false, s.merged, "", ""},
		"a new branch at an old one": {pushevent.Update{Before: none, After: s.merged, Ref: "refs/heads/new"}, []string{s.merged, "^main"}, false, s.merged, "refs/heads/main", ""},
		"an annotated tag":           {pushevent.Update{Before: none, After: s.tag, Ref: "refs/tags/v1"}, nil, false, s.renamed, "", "Release one\n"},
		"a light tag":                {pushevent.Update{Before: none, After: s.merged, Ref: "refs/tags/light"}, nil, false, s.merged, "refs/heads/main", ""},
		"a tag that moves":           {pushevent.Update{Before: s.renamed, After: s.first, Ref: "refs/tags/light"}, nil, false, s.first, "", ""},
		"a deletion":                 {pushevent.Update{Before: s.side, After: none, Ref: "refs/heads/gone"}, nil, false, "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, s.repo, test.update, 100)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if test.log != nil {
				want = strings.Fields(s.git(t, append([]string{"rev-list", "--topo-order", "--reverse"}, test.log...)...))
			}
			var ids []string
			for _, commit := range got.Commits {
				ids = append(ids, commit.ID)
				added, modified, removed := s.filesOf(t, commit.ID)
				if diff := cmp.Diff([][]string{added, modified, removed}, [][]string{commit.Added, commit.Modified, commit.Removed}); diff != "" {
					t.Errorf("files of %s: %s", commit.ID, diff)
				}
			}
			slices.Sort(want)
			slices.Sort(ids)
			if diff := cmp.Diff(want, ids, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			head := ""
			if got.Head != nil {
				head = got.Head.ID
			}
			if got.Forced != test.forced || head != test.head || got.Base != test.base || got.Message != test.message || got.Total != len(want) {
				t.Errorf("forced %v, head %s, base %q, message %q, %d commits", got.Forced, head, got.Base, got.Message, got.Total)
			}
		})
	}
}

func TestACommitIsDescribedAsItWasWritten(t *testing.T) {
	s := newStory(t)
	got, err := read(t, s.repo, pushevent.Update{Before: none, After: s.first, Ref: "refs/heads/x"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := &pushevent.Commit{
		ID: s.first, Tree: s.git(t, "rev-parse", s.first+"^{tree}"), Message: "Begin\n\nWith a body.\n",
		Author: pushevent.Person{Name: "Ann Author", Email: "ann@example.com"}, Committer: pushevent.Person{Name: "Carl", Email: "carl@example.com"},
		When:  time.Date(2026, 11, 30, 12, 0, 0, 0, time.FixedZone("", 7200)),
		Added: []string{"README.md", "trainer/main.go", "trainer/old name.go"}, Modified: []string{}, Removed: []string{},
	}
	if diff := cmp.Diff(want, got.Head); diff != "" {
		t.Error(diff)
	}
}

func TestTheNewestCommitsAreListedAndAllCounted(t *testing.T) {
	r := newRepo(t)
	var commits []string
	for i := range 30 {
		commits = append(commits, r.commit(t, fmt.Sprint(i)))
	}
	got, err := read(t, r, pushevent.Update{Before: none, After: commits[29], Ref: "refs/heads/main"}, 20)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, commit := range got.Commits {
		ids = append(ids, commit.ID)
	}
	if diff := cmp.Diff(commits[10:], ids); diff != "" || got.Total != 30 {
		t.Errorf("%d commits: %s", got.Total, diff)
	}
}

// Histories at random, whose commits have the times in which they were made.
func TestRandomHistoriesAreReadAsGitReadsThem(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	r := newRepo(t)
	r.commit(t, "tree")
	tree := r.git(t, "rev-parse", "HEAD^{tree}")
	var commits []string
	for i := range 60 {
		args := []string{"commit-tree", tree, "-m", fmt.Sprint(i)}
		for range min(len(commits), random.IntN(4)) {
			args = append(args, "-p", commits[max(0, len(commits)-1-random.IntN(12))])
		}
		date := fmt.Sprintf("GIT_COMMITTER_DATE=%d +0000", 1790000000+i/3) // three in a second
		commits = append(commits, git(t, r.dir, []string{date}, args...))
	}
	for range 60 {
		before, after := commits[random.IntN(len(commits))], commits[random.IntN(len(commits))]
		got, err := read(t, r, pushevent.Update{Before: before, After: after, Ref: "refs/heads/main"}, 100)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(r.git(t, "rev-list", after, "^"+before))
		place := map[string]int{}
		var ids []string
		for i, commit := range got.Commits {
			ids = append(ids, commit.ID)
			place[commit.ID] = i
		}
		for _, id := range ids {
			for _, parent := range strings.Fields(r.git(t, "log", "-1", "--format=%P", id)) {
				if at, listed := place[parent]; listed && at > place[id] {
					t.Errorf("%s comes before its parent %s", id, parent)
				}
			}
		}
		slices.Sort(want)
		slices.Sort(ids)
		if diff := cmp.Diff(want, ids, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s..%s: %s", before, after, diff)
		}
		cmd := exec.Command("git", "merge-base", "--is-ancestor", before, after)
		cmd.Dir = r.dir
		if ancestor := cmd.Run() == nil; got.Forced == ancestor {
			t.Errorf("%s..%s: forced %v, but git says ancestor %v", before, after, got.Forced, ancestor)
		}
	}
}

func TestAShallowCloneEndsWhereItEnds(t *testing.T) {
	s := newStory(t)
	shallow := repo{t.TempDir() + "/shallow"}
	git(t, "", nil, "clone", "-q", "--depth=2", "--branch=main", "file://"+s.dir, shallow.dir)
	got, err := read(t, shallow, pushevent.Update{Before: none, After: s.merged, Ref: "refs/heads/new"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	got2, err := read(t, shallow, pushevent.Update{Before: s.renamed, After: s.merged, Ref: "refs/heads/main"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if got.Total != 0 || got2.Total != 2 || got2.Forced { // the merge and its side
		t.Errorf("%d and %d commits, forced %v", got.Total, got2.Total, got2.Forced)
	}
}

func TestReadRefuses(t *testing.T) {
	s := newStory(t)
	missing := strings.Repeat("12", 20)
	for name, test := range map[string]struct {
		update pushevent.Update
		say    string
	}{
		"a commit that is not there":    {pushevent.Update{Before: s.first, After: missing, Ref: "refs/heads/main"}, "refs/heads/main is at " + missing},
		"a before that is not there":    {pushevent.Update{Before: missing, After: s.first, Ref: "refs/heads/main"}, "refs/heads/main was at " + missing},
		"a tree in place of the before": {pushevent.Update{Before: s.git(t, "rev-parse", "HEAD^{tree}"), After: s.first, Ref: "refs/heads/main"}, "it is no commit"},
		"a short commit":                {pushevent.Update{Before: s.first, After: "1234567", Ref: "refs/heads/main"}, "no commit of 40 digits"},
		"nothing to nothing":            {pushevent.Update{Before: none, After: none, Ref: "refs/heads/main"}, "was nowhere and is nowhere"},
		"a branch for a ref":            {pushevent.Update{Before: none, After: s.first, Ref: "main"}, "is no ref"},
		"notes":                         {pushevent.Update{Before: none, After: s.first, Ref: "refs/notes/commits"}, "neither a branch nor a tag"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, s.repo, test.update, 1)
			if err == nil || !strings.Contains(err.Error(), test.say) || exitcode.Of(err) != exitcode.BadInput {
				t.Errorf("error %v, want %q", err, test.say)
			}
		})
	}
	if _, err := pushevent.Open(t.TempDir()); exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("no repository: %v", err)
	}
}
