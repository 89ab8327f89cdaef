package demo

import (
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/demo/ociimage"
	"github.com/trainyard/trainyard/internal/demo/published"
)

// The git server is made on the published image, wherever the mirror has it, and can
// be pushed to another registry.
func TestThePublishedImageWithGitComesFromTheMirror(t *testing.T) {
	mirror := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer mirror.Close()
	d, _ := up(t)
	layer, err := ociimage.Layer(ociimage.Entry{Path: "usr/bin/git", Data: []byte("git")})
	if err != nil {
		t.Fatal(err)
	}
	base, err := ociimage.New(d.platform(), ociimage.Config{User: "65532:65532"}, layer)
	if err != nil {
		t.Fatal(err)
	}
	const public = "ghcr.io/tektoncd/pipeline/resolvers:v1"
	push := func(name name.Reference, image v1.Image) {
		t.Helper()
		if err := remote.Write(name, image); err != nil {
			t.Fatal(err)
		}
	}
	host := mirror.Listener.Addr().String()
	reference := func(text string) name.Reference {
		parsed, err := name.ParseReference(text, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	push(reference(host+"/copies/tektoncd/pipeline/resolvers:v1"), base)
	digest, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := imagelock.ParseMirror("http://" + host + "/copies")
	if err != nil {
		t.Fatal(err)
	}
	images := &registryImages{
		demo: d, mirror: parsed,
		images: published.Images{Tekton: map[string]imagelock.Image{fromsource.GitImportPath: {Name: public}}},
		pinned: map[string]imagelock.Pinned{public: {Name: public, Digest: digest.String()}},
	}
	got, err := images.withGit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hooked, err := addHook(got, "push_test.go")
	if err != nil {
		t.Fatal(err)
	}
	push(reference(host+"/trainyard/git:demo"), hooked)
	layers, err := hooked.Layers()
	if err != nil || len(layers) != 2 {
		t.Errorf("%d layers, %v", len(layers), err)
	}
	config, err := hooked.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" {
		t.Errorf("it runs as %+v, %v", config, err)
	}
}
