package imagelock_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// fixture is a locker with a real registry as its mirror.
type fixture struct {
	*imagelock.Locker
	requests atomic.Int64
	said     []string
}

func newFixture(t *testing.T, prefix string) *fixture {
	t.Helper()
	f := &fixture{}
	memory := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		memory.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	mirror, err := imagelock.ParseMirror(server.URL + prefix)
	if err != nil {
		t.Fatal(err)
	}
	client, err := registryclient.New(registryclient.Options{
		Insecure: mirror.Insecure(), Backoff: remote.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Locker = &imagelock.Locker{
		Path:     filepath.Join(t.TempDir(), "images.lock.yaml"),
		Registry: client,
		Mirror:   mirror,
		Now:      func() time.Time { return time.Date(2026, 11, 30, 23, 59, 0, 0, time.FixedZone("", 3600)) },
		Say:      func(line string) { f.said = append(f.said, line) },
	}
	return f
}

// push puts an image at a public name into the mirror.
func (f *fixture) push(t *testing.T, public string) (digest string) {
	t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	client := f.Registry.(*registryclient.Client)
	reference, err := client.Reference(f.Mirror.Name(public))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Push(t.Context(), reference, image); err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestResolveAsksOnceThenTheLockAnswers(t *testing.T) {
	for _, prefix := range []string{"", "/project"} {
		f := newFixture(t, prefix)
		const image = "docker.io/library/registry:3.1.2"
		digest := f.push(t, image)
		want := imagelock.Pinned{
			Name: image, Digest: digest, Locked: true,
			Source: "resolved on 2026-11-30 by mirror " + f.Mirror.Host,
		}
		got, err := f.Resolve(t.Context(), imagelock.Image{Name: image})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(f.said) != 1 || !strings.Contains(f.said[0], image) || !strings.Contains(f.said[0], digest) || !strings.Contains(f.said[0], f.Path) {
			t.Errorf("said %q", f.said)
		}

		f.push(t, image) // the tag moves
		before := f.requests.Load()
		again, err := f.Resolve(t.Context(), imagelock.Image{Name: image})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Error(diff)
		}
		if after := f.requests.Load(); after != before || len(f.said) != 1 {
			t.Errorf("the second time took %d requests and said %q", after-before, f.said)
		}
	}
}

func TestResolveKnowsDockerHubByAllItsNames(t *testing.T) {
	f := newFixture(t, "")
	digest := f.push(t, "docker.io/kindest/node:v1.37.0")
	for _, written := range []string{"index.docker.io/kindest/node:v1.37.0", "docker.io/kindest/node:v1.37.0"} {
		got, err := f.Resolve(t.Context(), imagelock.Image{Name: written})
		if err != nil || got.Digest != digest || got.Reference() != "docker.io/kindest/node@"+digest {
			t.Errorf("%s is %+v (%v)", written, got, err)
		}
	}
	if len(f.said) != 1 {
		t.Errorf("resolved %d times", len(f.said))
	}
}

func TestResolveTakesAPinWithoutAsking(t *testing.T) {
	f := newFixture(t, "")
	image := imagelock.Image{Name: "docker.io/kindest/node:v1.37.0", Digest: digestA, Source: "sigs.k8s.io/kind@v0.33.0"}
	got, err := f.Resolve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	want := imagelock.Pinned{Name: image.Name, Digest: digestA, Source: image.Source}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	locked, err := imagelock.Read(f.Path)
	if err != nil || len(locked) > 0 || f.requests.Load() > 0 {
		t.Errorf("locked %v (%v), %d requests: the pin is written elsewhere already", locked, err, f.requests.Load())
	}
}

func TestResolveTakesTheLockBeforeAPin(t *testing.T) {
	f := newFixture(t, "")
	for _, name := range []string{"docker.io/kindest/node:v1.37.0", "cgr.dev/chainguard/busybox"} {
		file := imagelock.File{name: {Digest: digestB, Source: "by hand"}}
		if err := file.Write(f.Path); err != nil {
			t.Fatal(err)
		}
		got, err := f.Resolve(t.Context(), imagelock.Image{Name: name, Digest: digestA, Source: "a module"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(imagelock.Pinned{Name: name, Digest: digestB, Source: "by hand", Locked: true}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestResolveKeepsOtherEntries(t *testing.T) {
	f := newFixture(t, "")
	first := imagelock.File{"docker.io/a/a:1": {Digest: digestA, Source: "by hand"}}
	if err := first.Write(f.Path); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, letter := range "bcdefgh" {
		names = append(names, "docker.io/x/"+string(letter)+":1")
		f.push(t, names[len(names)-1])
	}
	var said sync.Mutex
	f.Say = func(line string) { said.Lock(); defer said.Unlock(); f.said = append(f.said, line) }
	var all sync.WaitGroup
	for _, image := range names {
		all.Go(func() {
			if _, err := f.Resolve(t.Context(), imagelock.Image{Name: image}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	locked, err := imagelock.Read(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(locked) != 1+len(names) || locked["docker.io/a/a:1"].Digest != digestA || len(f.said) != len(names) {
		t.Errorf("locked %v, said %d lines", locked, len(f.said))
	}
}

// slow is a registry during whose answer somebody else locks the image.
type slow struct {
	imagelock.Registry
	meanwhile func()
}

func (s slow) Digest(ctx context.Context, reference name.Reference) (v1.Hash, error) {
	s.meanwhile()
	return s.Registry.Digest(ctx, reference)
}

func TestResolveReturnsWhatAnotherLockedMeanwhile(t *testing.T) {
	f := newFixture(t, "")
	f.push(t, "docker.io/a/a:1")
	f.Registry = slow{f.Registry, func() {
		if err := (imagelock.File{"docker.io/a/a:1": {Digest: digestB, Source: "another"}}).Write(f.Path); err != nil {
			t.Error(err)
		}
	}}
	f.Locker.Registry = f.Registry
	got, err := f.Resolve(t.Context(), imagelock.Image{Name: "docker.io/a/a:1"})
	if err != nil || got.Digest != digestB || got.Source != "another" {
		t.Errorf("%+v (%v), want %s", got, err, digestB)
	}
}

func TestResolveFails(t *testing.T) {
	tests := map[string]struct {
		image imagelock.Image
		lock  string
		code  int
		want  []string
	}{
		"a name that the registry does not have": {
			imagelock.Image{Name: "docker.io/a/a:1"}, "", exitcode.BadInput, []string{"docker.io/a/a:1", "not there"}},
		"no host":      {imagelock.Image{Name: "a/a:1"}, "", exitcode.BadInput, []string{"a/a:1", "HOST/REPOSITORY:TAG"}},
		"no tag":       {imagelock.Image{Name: "docker.io/a/a"}, "", exitcode.BadInput, []string{"docker.io/a/a", "no tag"}},
		"a wrong pin":  {imagelock.Image{Name: "docker.io/a/a:1", Digest: "sha256:0", Source: "a module"}, "", exitcode.Failed, []string{"docker.io/a/a:1", "a module", "sha256:0"}},
		"a wrong lock": {imagelock.Image{Name: "docker.io/a/a:1", Digest: digestA}, "x", exitcode.BadInput, []string{"images.lock.yaml"}},
		"no folder":    {imagelock.Image{Name: "docker.io/there/a:1"}, "none/", exitcode.BadInput, []string{"none"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			f.push(t, "docker.io/there/a:1")
			switch test.lock {
			case "x":
				if err := (imagelock.File{}).Write(f.Path); err != nil {
					t.Fatal(err)
				}
				writeFile(t, f.Path, test.lock)
			case "none/":
				f.Path = filepath.Join(filepath.Dir(f.Path), "none", "images.lock.yaml")
			}
			got, err := f.Resolve(t.Context(), test.image)
			if err == nil {
				t.Fatalf("resolved to %+v", got)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q has no %q", err, want)
				}
			}
			if code := exitcode.Of(err); code != test.code {
				t.Errorf("exit code %d, want %d: %v", code, test.code, err)
			}
			if len(f.said) > 0 {
				t.Errorf("said %q", f.said)
			}
		})
	}
}

func TestCheckFindsDigestsThatTheRegistryLacks(t *testing.T) {
	f := newFixture(t, "")
	there := f.push(t, "docker.io/a/there:1")
	good := imagelock.Pinned{Name: "docker.io/a/there:1", Digest: there, Source: "x", Locked: true}
	if err := f.Check(t.Context(), good); err != nil {
		t.Errorf("an image that is there: %v", err)
	}
	locked := imagelock.Pinned{Name: "docker.io/a/there:1", Digest: digestA, Source: "resolved on 2026-01-01", Locked: true}
	pinned := imagelock.Pinned{Name: "cgr.dev/a/busybox", Digest: digestB, Source: "github.com/a/a@v1.0.0"}
	err := f.Check(t.Context(), good, locked, pinned)
	if err == nil {
		t.Fatal("no error")
	}
	if exitcode.Of(err) != exitcode.Integrity || !errors.Is(err, registryclient.ErrNotFound) {
		t.Errorf("exit code %d: %v", exitcode.Of(err), err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%v", len(lines), err)
	}
	for i, wants := range [][]string{
		{"a/there@" + digestA, "resolved on 2026-01-01", "remove its entry", f.Path, locked.Name},
		{"a/busybox@" + digestB, "github.com/a/a@v1.0.0", "say which in " + f.Path, pinned.Name},
	} {
		for _, want := range wants {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %q has no %q", lines[i], want)
			}
		}
	}
}

func TestCheckSaysWhyARegistryCannotBeAsked(t *testing.T) {
	f := newFixture(t, "")
	mirror, err := imagelock.ParseMirror(f.Mirror.Host) // TLS, which it has not
	if err != nil {
		t.Fatal(err)
	}
	client, err := registryclient.New(registryclient.Options{Backoff: remote.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1}})
	if err != nil {
		t.Fatal(err)
	}
	f.Locker.Mirror, f.Locker.Registry = mirror, client
	err = f.Check(t.Context(), imagelock.Pinned{Name: "docker.io/a/a:1", Digest: digestA})
	if err == nil || strings.Contains(err.Error(), "its digest is") || exitcode.Of(err) == exitcode.Integrity {
		t.Errorf("error %v, want one of the connection", err)
	}
}

func TestReference(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/library/registry:3.1.2": "docker.io/library/registry@" + digestA,
		"cgr.dev/chainguard/busybox":       "cgr.dev/chainguard/busybox@" + digestA,
		"registry.test:5000/a/b":           "registry.test:5000/a/b@" + digestA,
		"registry.test:5000/a/b:1":         "registry.test:5000/a/b@" + digestA,
	} {
		if got := (imagelock.Pinned{Name: image, Digest: digestA}).Reference(); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}
