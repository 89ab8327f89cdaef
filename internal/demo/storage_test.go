package demo

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/kubectl"
)

// fakeKubectl runs a script in place of kubectl; applied is what it was given.
func fakeKubectl(t *testing.T, script string) (k kubectl.CLI, applied func() string) {
	t.Helper()
	dir := t.TempDir()
	k.Command = filepath.Join(dir, "kubectl")
	text := "#!/bin/sh\ncase \"$*\" in *apply*) cat >" + dir + "/applied; exit 0;; esac\n" + script
	if err := os.WriteFile(k.Command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return k, func() string {
		data, err := os.ReadFile(filepath.Join(dir, "applied"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(data)
	}
}

func TestASecretIsMadeUpOnce(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	makeUp := func() map[string]string { return map[string]string{"secret": "made up"} }
	for name, test := range map[string]struct {
		script  string
		want    map[string]string
		applied string
		wantErr string
	}{
		"the first time": {`echo 'Error from server (NotFound): secrets "x" not found' >&2; exit 1`, map[string]string{"secret": "made up"}, `"stringData":{"secret":"made up"}`, ""},
		"after that":     {`echo '{"data": {"secret": "` + encode("kept") + `", "other": "eA=="}}'`, map[string]string{"secret": "kept"}, "", ""},
		"without a key":  {`echo '{"data": {"other": "eA=="}}'`, nil, "", "secret trainyard-system/x has no secret: delete it"},
		"no cluster":     {`echo 'connection refused' >&2; exit 1`, nil, "", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			k, applied := fakeKubectl(t, test.script)
			got, err := keptSecret(t.Context(), k, "x", makeUp)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
			if said := applied(); (said == "") != (test.applied == "") || !strings.Contains(said, test.applied) {
				t.Errorf("applied: %s", said)
			}
		})
	}
}
