package demo

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
)

// The Deployment names a folder of hooks: there the image must have ours.
func TestTheGitServersHookIsWhereItLooks(t *testing.T) {
	data, err := manifest("git-deployment")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(data, &deployment); err != nil {
		t.Fatal(err)
	}
	hooks := ""
	for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "GIT_CONFIG_VALUE_0" {
			hooks = strings.TrimPrefix(variable.Value, "/")
		}
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("the hook"), 0o600); err != nil {
		t.Fatal(err)
	}
	layer, err := ociimage.Layer(ociimage.Entry{Path: "usr/bin/git", Data: []byte("git")})
	if err != nil {
		t.Fatal(err)
	}
	base, err := ociimage.New(v1.Platform{OS: "linux", Architecture: "arm64"}, ociimage.Config{}, layer)
	if err != nil {
		t.Fatal(err)
	}
	image, err := addHook(base, program)
	if err != nil {
		t.Fatal(err)
	}
	contents := mutate.Extract(image)
	defer contents.Close()
	found := map[string]int64{}
	for reader := tar.NewReader(contents); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header.Mode
	}
	if mode, has := found[hooks+"/post-receive"]; !has || mode&0o111 != 0o111 || found["usr/bin/git"] == 0 {
		t.Errorf("the image has %v, the hooks are in %s", found, hooks)
	}
	if _, err := addHook(base, program+"-missing"); err == nil {
		t.Error("without a hook there is an image")
	}
}

// Every value that the demo fills in has a place in a manifest, and no other is left.
func TestTheGitServersManifestsAreFilledIn(t *testing.T) {
	d, _ := up(t)
	text, err := d.gitManifests("r/git@sha256:9")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"image: r/git@sha256:9\n", "value: git://10.1.2.3:30418/trainyard.git\n", "value: http://el-trainyard.trainyard.svc.cluster.local:8080\n",
		"value: trainyard/trainyard\n", "nodePort: 30418 ", "kind: PersistentVolumeClaim\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nowhere is %q", want)
		}
	}
	for _, placeholder := range []string{"IMAGE", "GIT_URL", "LISTENER_URL", "REPOSITORY"} {
		if strings.Contains(text, ": "+placeholder+"\n") {
			t.Errorf("%s is left", placeholder)
		}
	}
}
