package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	const (
		full    = "Name:\tinit\nCapBnd:\t000001ffffffffff\n"
		without = "Name:\tinit\nCapBnd:\t000001fffeffffff\n" // CAP_SYS_RESOURCE is bit 24
	)
	tests := map[string]struct {
		files   map[string]string
		want    Host
		wantErr string
	}{
		"a laptop of today": {
			files: map[string]string{"proc/1/status": full, "sys/fs/cgroup/cgroup.controllers": "cpu memory\n"},
		},
		"control groups of version 1": {
			files: map[string]string{"proc/1/status": full, "sys/fs/cgroup/memory/tasks": ""},
			want:  Host{CgroupV1: true},
		},
		"both versions, with 2 beside 1": {
			files: map[string]string{"proc/1/status": full, "sys/fs/cgroup/unified/cgroup.controllers": ""},
			want:  Host{CgroupV1: true},
		},
		"a sandbox": {
			files: map[string]string{"proc/1/status": without, "sys/fs/cgroup/cgroup.controllers": ""},
			want:  Host{NoResourceCapability: true},
		},
		"an old sandbox": {
			files: map[string]string{"proc/1/status": without},
			want:  Host{CgroupV1: true, NoResourceCapability: true},
		},
		"a restricted shell on a host that is not": {
			files: map[string]string{"proc/1/status": full, "proc/self/status": without, "sys/fs/cgroup/cgroup.controllers": ""},
		},
		"a hidden process 1": {
			files: map[string]string{"proc/self/status": without, "sys/fs/cgroup/cgroup.controllers": ""},
			want:  Host{NoResourceCapability: true},
		},
		"no proc":              {wantErr: "proc/self/status"},
		"a status of no Linux": {files: map[string]string{"proc/1/status": "Name: init\n"}, wantErr: "CapBnd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range test.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Detect(root)
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
