package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeKind is a kind command that records its calls and then runs a script.
func fakeKind(t *testing.T, script string) (kind Kind, calls func() []string) {
	t.Helper()
	r := record(t, script)
	return Kind{Command: r.Command, Network: "net", Kubeconfig: "/state/kubeconfig"}, r.lines
}

func TestExistsIsTheWholeName(t *testing.T) {
	tests := map[string]struct {
		script string
		want   bool
		fails  bool
	}{
		"among others":       {"printf 'a\\ntrainyard\\nb\\n'", true, false},
		"one that is longer": {"echo trainyard-int", false, false},
		"none":               {"echo 'No kind clusters found.' >&2", false, false},
		"an error":           {"echo trainyard; echo 'no engine' >&2; exit 1", false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind, calls := fakeKind(t, test.script)
			got, err := kind.Exists(t.Context(), "trainyard")
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%v, %v", got, err)
			}
			if diff := cmp.Diff([]string{"get|clusters|--quiet"}, calls()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCreateHandsOverTheConfigurationAndTheNetwork(t *testing.T) {
	kind, calls := fakeKind(t, `cat >"$(dirname "$0")/config"; echo "$KIND_EXPERIMENTAL_DOCKER_NETWORK" >"$(dirname "$0")/network"`)
	if err := kind.Create(t.Context(), "n", []byte("kind: Cluster\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create|cluster|--name|n|--config|-|--kubeconfig|/state/kubeconfig"}, calls()); diff != "" {
		t.Error(diff)
	}
	for file, want := range map[string]string{"config": "kind: Cluster\n", "network": "net\n"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(kind.Command), file))
		if err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
}

const deletion = "delete|cluster|--name|n|--kubeconfig|/state/kubeconfig"

func TestAClusterThatFailsIsDeleted(t *testing.T) {
	kind, calls := fakeKind(t, `case "$*" in cluster*--config*) i=0; while [ $i -lt 99 ]; do i=$((i+1)); echo "line $i" >&2; done; exit 1;; esac`)
	err := kind.Create(t.Context(), "n", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "kind create cluster: exit status 1:\nline 70\n") || !strings.HasSuffix(err.Error(), "\nline 99") {
		t.Errorf("error %v, want the end of what kind says", err)
	}
	if got := calls(); len(got) != 2 || got[1] != deletion {
		t.Errorf("calls %q", got)
	}
}

func TestAClusterThatIsInterruptedIsDeleted(t *testing.T) {
	kind, calls := fakeKind(t, `case "$*" in cluster*--config*) sleep 60 & echo >"$(dirname "$0")/started"; wait;; esac`)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(filepath.Dir(kind.Command), "started")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel(interrupt)
	}()
	started := time.Now()
	if err := kind.Create(ctx, "n", nil); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
	// kind's children are ended with it: sleep would have kept its standard error
	// open for as long as we wait.
	if took := time.Since(started); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := calls(); len(got) != 2 || got[1] != deletion {
		t.Errorf("calls %q", got)
	}
}
