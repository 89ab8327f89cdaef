package bundle

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	resolver "github.com/tektoncd/pipeline/pkg/resolution/resolver/bundle"
)

// resolveInCluster reads an object as a cluster does: with the code of Tekton's resolver.
func resolveInCluster(t testing.TB, ref, kind, name string) *resolver.ResolvedResource {
	t.Helper()
	r, err := resolver.GetEntry(t.Context(), authn.DefaultKeychain, resolver.RequestOptions{Bundle: ref, Kind: kind, EntryName: name})
	if err != nil {
		t.Fatalf("Tekton's resolver: %v", err)
	}
	return r
}

func TestTektonsResolverReadsWhatWasPushed(t *testing.T) {
	h := host(t, inMemory())
	objects := decode(t, task("build")+"---\n"+pipeline("p", "build"), stepAction)
	img, err := Build(t.Context(), objects, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := Push(t.Context(), client(t, h), h+"/trainyard/tasks:v1", img)
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct{ kind, name, version string }{
		{"task", "build", "tekton.dev/v1"}, {"pipeline", "p", "tekton.dev/v1"}, {"stepaction", "act", "tekton.dev/v1beta1"},
	} {
		got := resolveInCluster(t, ref.String(), tc.kind, tc.name)
		if d := cmp.Diff(string(objects[i].JSON), string(got.Data())); d != "" {
			t.Errorf("%s (-bundled +resolved):\n%s", tc.name, d)
		}
		want := map[string]string{
			resolver.ResolverAnnotationKind: tc.kind, resolver.ResolverAnnotationName: tc.name, resolver.ResolverAnnotationAPIVersion: tc.version,
		}
		if d := cmp.Diff(want, got.Annotations()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
		if sha := got.RefSource().Digest["sha256"]; "sha256:"+sha != digest(t, img) {
			t.Errorf("%s: provenance has digest %s", tc.name, sha)
		}
	}
}

// I-68, read as a cluster reads.
func TestI68TektonsResolverReadsTasksOfEverySize(t *testing.T) {
	h := host(t, inMemory())
	for _, size := range sizes() {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			big := bigTask(t, size)
			img, err := Build(t.Context(), append(decode(t, task("other")), big), Options{})
			if err != nil {
				t.Fatal(err)
			}
			ref, err := Push(t.Context(), client(t, h), fmt.Sprintf("%s/tasks:%d", h, size), img)
			if err != nil {
				t.Fatal(err)
			}
			if got := resolveInCluster(t, ref.String(), "task", "big").Data(); !bytes.Equal(got, big.JSON) {
				t.Errorf("resolved %d bytes, want the %d that were bundled", len(got), size)
			}
		})
	}
}
