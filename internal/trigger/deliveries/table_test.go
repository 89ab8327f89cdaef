package deliveries

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/pushrun"
)

func secrets() Secrets {
	return Secrets{pushrun.GitHub: "a", pushrun.GitLab: "b", pushrun.Gitea: "c"}
}

// The tables say of each delivery either which run has to come of it or what refuses it,
// and there are enough of both of every forge.
func TestTablesSayWhatIsExpected(t *testing.T) {
	for name, table := range map[string]struct {
		deliveries []Delivery
		runs, none int // of each forge, at least
	}{
		"any file":   {Table(secrets()), 15, 45},
		"some files": {FilesTable(secrets()), 8, 10},
	} {
		seen := map[string]bool{}
		runs, none := map[pushrun.Forge]map[string]bool{}, map[pushrun.Forge]int{}
		for _, d := range table.deliveries {
			if seen[d.Name] {
				t.Errorf("%s: two deliveries are called %q", name, d.Name)
			}
			seen[d.Name] = true
			if (d.Run == nil) == (d.By == "") {
				t.Errorf("%s: %s has run %v and is refused by %q", name, d.Name, d.Run, d.By)
			}
			if d.Run == nil {
				none[d.Forge]++
				continue
			}
			if runs[d.Forge] == nil {
				runs[d.Forge] = map[string]bool{}
			}
			runs[d.Forge][d.Run.Name] = true
			if d.Run.Name != "trainyard-"+d.Run.Push.Commit || len(d.Run.Push.Commit) != 40 {
				t.Errorf("%s: %s: run %+v", name, d.Name, d.Run)
			}
		}
		for _, forge := range Forges() {
			if len(runs[forge]) < table.runs || none[forge] < table.none {
				t.Errorf("%s: %s: %d runs and %d refused", name, forge, len(runs[forge]), none[forge])
			}
		}
	}
}

// A table that is made anew is the same, so that a test in a cluster may be repeated.
func TestTablesAreTheSameEachTime(t *testing.T) {
	first, second := Table(secrets()), Table(secrets())
	for i := range first {
		if !bytes.Equal(first[i].Body, second[i].Body) || first[i].Name != second[i].Name {
			t.Errorf("%q, then %q", first[i].Name, second[i].Name)
		}
	}
}

// What GitHub's documentation gives to try an implementation with:
// https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
func TestSigningIsWhatGitHubDocuments(t *testing.T) {
	d := Delivery{Forge: pushrun.GitHub, Header: header(pushrun.GitHub, "push"), Body: []byte("Hello, World!")}
	Sign(&d, "It's a Secret to Everybody")
	if got, want := d.Header.Get("X-Hub-Signature-256"), "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestSettingsAreAnExpression(t *testing.T) {
	text, err := SomeFiles("https://git.example.com/a.git").Expression()
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"repositories": map[string]any{"trainyard/trainyard": map[string]any{"name": "trainyard", "url": "https://git.example.com/a.git"}},
		"branches":     []any{"main", "release/1.0"},
		"paths":        []any{"^trainer/", `^project\.toml$`},
		"config":       "trainer/train.yaml",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
