package capability_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

func TestBoundingReadsTheLineOfAStatusFile(t *testing.T) {
	tests := map[string]struct {
		status  string
		has     []string
		hasNot  []string
		wantErr string
	}{
		"a root shell on bare metal": {
			status: "Name:\tsh\nCapBnd:\t000001ffffffffff\n",
			has:    []string{"CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_CHECKPOINT_RESTORE"},
			hasNot: []string{"CAP_UNHEARD_OF"},
		},
		"a sandbox without CAP_SYS_RESOURCE": { // bit 24, as linux/capability.h says
			status: "CapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\n",
			has:    []string{"CAP_SYS_ADMIN", "CAP_SYS_TIME"},
			hasNot: []string{"CAP_SYS_RESOURCE"},
		},
		"a container of Docker's": { // its documented default list of 14
			status: "CapBnd:\t00000000a80425fb\n",
			has:    []string{"CAP_NET_RAW", "CAP_MKNOD", "CAP_AUDIT_WRITE", "CAP_SETFCAP"},
			hasNot: []string{"CAP_SYS_ADMIN", "CAP_NET_ADMIN"},
		},
		"no such line": {status: "Name:\tsh\n", wantErr: "no line CapBnd"},
		"no number":    {status: "CapBnd:\tall\n", wantErr: "CapBnd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "status")
			if err := os.WriteFile(file, []byte(test.status), 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := capability.Bounding(file)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, capability := range test.has {
				if !set.Has(capability) {
					t.Errorf("%s is missing", capability)
				}
			}
			for _, capability := range test.hasNot {
				if set.Has(capability) {
					t.Errorf("%s is held", capability)
				}
			}
		})
	}
}

// FuzzBounding: a set is that of the file's line, and holds known names alone.
func FuzzBounding(f *testing.F) {
	for _, status := range []string{"CapBnd:\t000001ffffffffff\n", "CapBnd: 0", "CapBnd:", "CapBnd:-1\n", "CapBnd:\t1ffffffffffffffff", "Name:\tCapBnd:\t1\n", ""} {
		f.Add(status)
	}
	file := filepath.Join(f.TempDir(), "status")
	f.Fuzz(func(t *testing.T, status string) {
		if err := os.WriteFile(file, []byte(status), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := capability.Bounding(file)
		if err != nil {
			return
		}
		found := false
		for line := range strings.SplitSeq(status, "\n") {
			digits, isLine := strings.CutPrefix(line, "CapBnd:")
			if !isLine {
				continue
			}
			var want uint64
			_, err := fmt.Sscanf(strings.TrimSpace(digits), "%x", &want)
			found = err == nil && capability.Set(want) == set
			break
		}
		if !found {
			t.Errorf("%q: %x", status, uint64(set))
		}
		if set.Has("") || set.Has("CAP_") || set.Has("CHOWN") {
			t.Errorf("%x holds a capability without a name", uint64(set))
		}
	})
}
