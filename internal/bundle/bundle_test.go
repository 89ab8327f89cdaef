package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/tektoncd/pipeline/pkg/remote"
	"github.com/tektoncd/pipeline/pkg/remote/oci"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/registryclient"
)

const pinned = "example.com/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func task(name string) string {
	return fmt.Sprintf("apiVersion: tekton.dev/v1\nkind: Task\nmetadata:\n  name: %s\nspec:\n  steps:\n    - name: run\n      image: %s\n      command: [/bin/run]\n", name, pinned)
}

func pipeline(name, task string) string {
	return fmt.Sprintf("apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata:\n  name: %s\nspec:\n  tasks:\n    - name: a\n      taskRef: {name: %s}\n", name, task)
}

func decoder(t testing.TB) *manifest.Decoder {
	t.Helper()
	d, err := manifest.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func decode(t testing.TB, texts ...string) []manifest.Object {
	t.Helper()
	var all []manifest.Object
	for i, text := range texts {
		objects, err := decoder(t).Decode(fmt.Sprintf("f%d.yaml", i+1), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects...)
	}
	return all
}

func build(t testing.TB, o Options, texts ...string) v1.Image {
	t.Helper()
	img, err := Build(t.Context(), decode(t, texts...), o)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digest(t testing.TB, img v1.Image) string {
	t.Helper()
	h, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func wantLine(t *testing.T, err error, code int, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want %q in it", err, want)
	}
	if strings.ContainsAny(err.Error(), "\n\r\x00\x1b<") {
		t.Errorf("error %q is not one plain line", err)
	}
	if got := exitcode.Of(err); got != code {
		t.Errorf("exit code %d, want %d: %v", got, code, err)
	}
}

// host starts a server and returns its host and port.
func host(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func inMemory() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

func client(t testing.TB, insecure ...string) *registryclient.Client {
	t.Helper()
	c, err := registryclient.New(registryclient.Options{Insecure: insecure, Backoff: ggcr.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 2}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// resolve reads an object with the code of Tekton's client of bundles.
func resolve(t testing.TB, ref, kind, name string) runtime.Object {
	t.Helper()
	o, _, err := oci.NewResolver(ref, authn.DefaultKeychain).Get(t.Context(), kind, name)
	if err != nil {
		t.Fatalf("Tekton's client: %v", err)
	}
	return o
}

func TestTektonReadsWhatWasPushed(t *testing.T) {
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
	if want := h + "/trainyard/tasks@" + digest(t, img); ref.String() != want {
		t.Errorf("reference %s, want %s", ref, want)
	}
	listed, err := oci.NewResolver(ref.String(), authn.DefaultKeychain).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// What the contract asks for, in full form: the group as well.
	want := []remote.ResolvedObject{
		{Kind: "pipeline", APIVersion: "tekton.dev/v1", Name: "p"},
		{Kind: "stepaction", APIVersion: "tekton.dev/v1beta1", Name: "act"},
		{Kind: "task", APIVersion: "tekton.dev/v1", Name: "build"},
	}
	if d := cmp.Diff(want, listed); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i, tc := range []struct{ kind, name string }{{"task", "build"}, {"pipeline", "p"}, {"stepaction", "act"}} {
		if d := cmp.Diff(objects[i].Typed, resolve(t, ref.String(), tc.kind, tc.name)); d != "" {
			t.Errorf("%s (-bundled +resolved):\n%s", tc.name, d)
		}
	}
	served, err := client(t, h).Image(t.Context(), ref, v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(served); err != nil {
		t.Error(err)
	}
}

const stepAction = "apiVersion: tekton.dev/v1beta1\nkind: StepAction\nmetadata: {name: act}\nspec: {image: \"" + pinned + "\", command: [/bin/act]}\n"

// served reads an object from a registry without any code of ours.
func served(t testing.TB, ref name.Digest, object string) []byte {
	t.Helper()
	img, err := ggcr.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range m.Layers {
		if l.Annotations["dev.tekton.image.name"] != object {
			continue
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		rc, err := layers[i].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		tr := tar.NewReader(rc)
		if _, err := tr.Next(); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	t.Fatalf("no object %s in %s", object, ref)
	return nil
}

// bigTask is a task of so many bytes, of text that hardly compresses, as real
// descriptions do not either.
func bigTask(t testing.TB, size int) manifest.Object {
	t.Helper()
	text := strings.Replace(task("big"), "spec:\n", "spec:\n  description: \"\"\n", 1)
	filler := make([]byte, size-len(decode(t, text)[0].JSON))
	state := uint32(size)
	for i := range filler {
		state = state*1664525 + 1013904223
		filler[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."[state>>26]
	}
	o := decode(t, strings.Replace(text, `""`, `"`+string(filler)+`"`, 1))[0]
	if len(o.JSON) != size {
		t.Fatalf("object of %d bytes, want %d", len(o.JSON), size)
	}
	return o
}

func sizes() []int {
	return []int{1 << 10, 4<<10 - 1, 4 << 10, 4<<10 + 1, 32 << 10, 32<<10 + 1, 64<<10 - 1, 64<<10 + 1, 128 << 10, 256 << 10}
}

// I-68: one more byte in a task, and the resolver read a layer cut short.
func TestI68TasksOfEverySizeRoundTrip(t *testing.T) {
	h := host(t, inMemory())
	c := client(t, h)
	for _, size := range sizes() {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			big := bigTask(t, size)
			img, err := Build(t.Context(), append(decode(t, task("other")), big), Options{})
			if err != nil {
				t.Fatal(err)
			}
			ref, err := Push(t.Context(), c, fmt.Sprintf("%s/tasks:%d", h, size), img)
			if err != nil {
				t.Fatal(err)
			}
			if got := served(t, ref, "big"); !bytes.Equal(got, big.JSON) {
				t.Errorf("served %d bytes, want the %d that were bundled", len(got), size)
			}
			pulled, _, err := Pull(t.Context(), c, ref.String())
			if err != nil {
				t.Fatal(err)
			}
			entries, err := List(decoder(t), pulled)
			if err != nil || entries[0].Size != size {
				t.Errorf("list: %+v, %v", entries, err)
			}
		})
	}
}

// I-70: what a registry answers must not end as "control characters are not allowed".
func TestI70ARegistrysErrorIsOneSentence(t *testing.T) {
	page := func(status int, contentType, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	const html = "<!DOCTYPE html>\n<html><body>\x1b[31mnginx\x00</body></html>"
	for name, tc := range map[string]struct {
		handler http.Handler
		code    int
		want    string
	}{
		"404 as JSON": {page(404, "application/json", `{"errors":[{"code":"NAME_UNKNOWN","message":"no\nsuch"}]}`), exitcode.BadInput, "404 Not Found: NAME_UNKNOWN no such"},
		"404 as HTML": {page(404, "text/html", html), exitcode.BadInput, "404 Not Found"},
		"500":         {page(500, "text/plain", "out of\nspace"), exitcode.IO, "500"},
		"502 as HTML": {page(502, "text/html", html), exitcode.IO, "502 Bad Gateway"},
		"503":         {page(503, "", ""), exitcode.IO, "503"},
		"200 as HTML": {page(200, "text/html", html), exitcode.BadInput, "answered 200 with a web page"},
	} {
		t.Run(name, func(t *testing.T) {
			h := host(t, tc.handler)
			_, _, err := Pull(t.Context(), client(t, h), h+"/tasks:v1")
			wantLine(t, err, tc.code, tc.want)
			if !strings.Contains(err.Error(), h+"/tasks:v1") {
				t.Errorf("%q does not name the image", err)
			}
			if tc.code == exitcode.IO { // a write finds nothing there, which is no error
				_, err = Push(t.Context(), client(t, h), h+"/tasks:v1", build(t, Options{}, task("a")))
				wantLine(t, err, tc.code, tc.want)
			}
		})
	}
}

// I-66, I-71: no guessing that a host may be spoken to in plain http, and nothing
// that one push allows reaches the rest of the process.
func TestI66AndI71PlainHTTPOnlyForListedHosts(t *testing.T) {
	var requests atomic.Int64
	memory := inMemory()
	h := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		memory.ServeHTTP(w, r)
	}))
	img := build(t, Options{}, task("a"))
	before, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t.Fatal("the default transport is somebody else's")
	}
	config := before.TLSClientConfig

	_, err := Push(t.Context(), client(t), h+"/tasks:v1", img)
	wantLine(t, err, exitcode.Usage, "plain http")
	_, _, err = Pull(t.Context(), client(t, "other.example:5000"), h+"/tasks:v1")
	wantLine(t, err, exitcode.Usage, "plain http")
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests in plain http to a host that nobody listed", n)
	}
	if _, err = Push(t.Context(), client(t, h), h+"/tasks:v1", img); err != nil {
		t.Fatal(err)
	}
	if http.DefaultTransport != http.RoundTripper(before) || before.TLSClientConfig != config {
		t.Error("pushing changed http.DefaultTransport")
	}
	_, err = Push(t.Context(), client(t), h+"/tasks:v1", img)
	wantLine(t, err, exitcode.Usage, "plain http")
}

func TestTheSameObjectsGiveTheSameBytes(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("elsewhere", 3600))
	o := Options{Source: "https://example.com/repo", Revision: "abc", Created: created}
	first := build(t, o, task("a"), task("b"), pipeline("a", "b"))
	raw, err := first.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	// Another order of files, other comments, other spelling, another zone.
	o.Created = created.UTC()
	again := build(t, o, pipeline("a", "b")+"---\n# comment\n"+task("b"), "kind: Task\n"+strings.Replace(task("a"), "kind: Task\n", "", 1))
	rawAgain, err := again.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(raw), string(rawAgain)); d != "" {
		t.Errorf("(-first +again):\n%s", d)
	}
	var m v1.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"org.opencontainers.image.created":  "2026-01-02T02:04:05Z",
		"org.opencontainers.image.source":   "https://example.com/repo",
		"org.opencontainers.image.revision": "abc",
	}
	if d := cmp.Diff(want, m.Annotations); d != "" {
		t.Errorf("annotations (-want +got):\n%s", d)
	}
	for name, other := range map[string]v1.Image{
		"revision": build(t, Options{Source: o.Source, Revision: "abd", Created: created}, task("a"), task("b"), pipeline("a", "b")),
		"object":   build(t, o, task("a"), task("c"), pipeline("a", "b")),
	} {
		if digest(t, other) == digest(t, first) {
			t.Errorf("another %s gives the same digest", name)
		}
	}
}

// A digest that was right once must be right for everybody: on other machines, with
// other versions of Go.
func TestDigestIsTheOneOnRecord(t *testing.T) {
	const want = "sha256:0820cc56d220fb00749d7c6b8bbe2bc9b8cd96ae732ea64cff4743d998d45d8e"
	if got := digest(t, build(t, Options{Revision: "abc"}, task("a"), pipeline("p", "a"))); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestBuildRefuses(t *testing.T) {
	many := func(n int) []string {
		var texts []string
		for i := range n {
			texts = append(texts, task(fmt.Sprintf("t%d", i)))
		}
		return texts
	}
	// Objects count, not files (tkn counts files, so that 21 documents pass its push).
	oneFile := strings.Join(many(21), "---\n")
	for name, tc := range map[string]struct {
		texts []string
		want  string
	}{
		"nothing":                       {nil, "no object to bundle"},
		"21 files":                      {many(21), "f21.yaml: document 1: Task t20: is number 21 of 21 objects"},
		"21 documents of one file":      {[]string{oneFile}, "f1.yaml: document 21: Task t20: is number 21 of 21 objects"},
		"one name twice":                {[]string{task("a"), task("b") + "---\n" + task("a")}, "f2.yaml: document 2: Task a: metadata.name: there is such a Task already in document 1 of f1.yaml"},
		"a run":                         {[]string{"apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: r}\nspec: {taskRef: {name: a}}\n"}, "TaskRun in tekton.dev/v1 does not belong in a bundle"},
		"a secret":                      {[]string{"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"}, "Secret in v1 does not belong in a bundle"},
		"a task of the old version":     {[]string{strings.Replace(task("a"), "dev/v1", "dev/v1beta1", 1)}, "Task in tekton.dev/v1beta1 does not belong"},
		"a generated name":              {[]string{strings.Replace(task("a"), "name: a", "generateName: a-", 1)}, "metadata.name: missing"},
		"what Tekton refuses":           {[]string{strings.Replace(task("a"), "/bin/run", "$(params.none)", 1)}, "Task a: "},
		"an image by tag":               {[]string{strings.Replace(task("a"), pinned, "example.com/app:v1", 1)}, `image "example.com/app:v1" is not pinned`},
		"an image without tag":          {[]string{strings.Replace(task("a"), pinned, "busybox", 1)}, `image "busybox" is not pinned`},
		"the placeholder":               {[]string{strings.Replace(task("a"), pinned, manifest.Placeholder, 1)}, "is a placeholder"},
		"a task beyond etcd's patience": {[]string{strings.Replace(task("a"), "spec:", "spec:\n  description: "+strings.Repeat("a", maxObject), 1)}, "more than an API server takes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(t.Context(), decode(t, tc.texts...), Options{})
			wantLine(t, err, exitcode.BadInput, tc.want)
		})
	}
	if entries, err := List(decoder(t), build(t, Options{}, many(MaxObjects)...)); err != nil || len(entries) != MaxObjects {
		t.Errorf("%d objects: list %d, %v", MaxObjects, len(entries), err)
	}
}

// A task and a pipeline may share a name; the order is kind, then name.
func TestListNamesWhatIsInIt(t *testing.T) {
	entries, err := List(decoder(t), build(t, Options{}, task("b"), pipeline("b", "a"), task("a")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.APIVersion+" "+e.Kind+" "+e.Name)
		if !strings.HasPrefix(e.Digest, "sha256:") || e.Size == 0 {
			t.Errorf("%+v", e)
		}
	}
	if d := cmp.Diff([]string{"tekton.dev/v1 Pipeline b", "tekton.dev/v1 Task a", "tekton.dev/v1 Task b"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// tarOf makes a layer of files by hand.
func tarOf(t *testing.T, files ...string) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Size: int64(len(f)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return rawLayer(t, buf.Bytes())
}

func rawLayer(t *testing.T, data []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func imageOf(t *testing.T, layer v1.Layer, about map[string]string) v1.Image {
	t.Helper()
	img, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, Annotations: about})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestListRefusesWhatIsNoBundle(t *testing.T) {
	about := func(version, kind, name string) map[string]string {
		return map[string]string{annotationAPIVersion: version, annotationKind: kind, annotationName: name}
	}
	good := about("tekton.dev/v1", "task", "a")
	app, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	big, err := random.Image(64, 21)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		img  v1.Image
		code int
		want string
	}{
		"an application":        {app, exitcode.BadInput, "layer 1 has no annotation dev.tekton.image.apiVersion"},
		"an image of 21 layers": {big, exitcode.BadInput, "21 layers"},
		"an empty image":        {empty.Image, exitcode.BadInput, "0 layers"},
		"another name":          {imageOf(t, tarOf(t, task("b")), good), exitcode.Integrity, "annotated as tekton.dev/v1 task a, but holds tekton.dev/v1 Task b"},
		"another kind":          {imageOf(t, tarOf(t, pipeline("a", "b")), good), exitcode.Integrity, "but holds"},
		"another version":       {imageOf(t, tarOf(t, task("a")), about("tekton.dev/v2", "task", "a")), exitcode.Integrity, "but holds"},
		"two objects":           {imageOf(t, tarOf(t, task("a")+"---\n"+task("b")), good), exitcode.BadInput, "2 objects in one layer"},
		"two files":             {imageOf(t, tarOf(t, task("a"), task("b")), good), exitcode.BadInput, "more than one file"},
		"no file":               {imageOf(t, tarOf(t), good), exitcode.BadInput, "no file in it"},
		"no tar":                {imageOf(t, rawLayer(t, bytes.Repeat([]byte("x"), 2000)), good), exitcode.BadInput, "not a tar"},
		"an unknown field":      {imageOf(t, tarOf(t, strings.Replace(task("a"), "command", "comand", 1)), good), exitcode.BadInput, "spec.steps[0].comand: unknown field"},
		"a huge file":           {imageOf(t, tarOf(t, strings.Repeat(" ", maxObject+1)), good), exitcode.BadInput, "more than an API server takes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := List(decoder(t), tc.img)
			wantLine(t, err, tc.code, tc.want)
		})
	}
	// tkn writes the version without its group, and Tekton takes it.
	if _, err := List(decoder(t), imageOf(t, tarOf(t, task("a")), about("v1", "task", "a"))); err != nil {
		t.Error(err)
	}
}

func TestPushFindsThatAnotherWasFaster(t *testing.T) {
	memory := inMemory()
	other := build(t, Options{}, task("other"))
	h := ""
	swapped := false
	h = host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		memory.ServeHTTP(w, r)
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifests/v1") && !swapped {
			swapped = true // somebody else pushes right behind us
			if _, err := Push(context.Background(), client(t, h), h+"/tasks:v1", other); err != nil {
				t.Error(err)
			}
		}
	}))
	_, err := Push(t.Context(), client(t, h), h+"/tasks:v1", build(t, Options{}, task("a")))
	wantLine(t, err, exitcode.Integrity, "but the registry serves "+digest(t, other))
}

func TestNothingIsUnderTheTagAfterAFailedPush(t *testing.T) {
	memory := inMemory()
	uploads := 0
	h := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			if uploads++; uploads > 1 {
				http.Error(w, "disk full", http.StatusInsufficientStorage)
				return
			}
		}
		memory.ServeHTTP(w, r)
	}))
	_, err := Push(t.Context(), client(t, h), h+"/tasks:v1", build(t, Options{}, task("a"), task("b"), task("c")))
	wantLine(t, err, exitcode.IO, h+"/tasks:v1")
	_, _, err = Pull(t.Context(), client(t, h), h+"/tasks:v1")
	if !errors.Is(err, registryclient.ErrNotFound) {
		t.Errorf("after a failed push the tag gives %v", err)
	}
}

func TestPushWantsATag(t *testing.T) {
	img := build(t, Options{}, task("a"))
	_, err := Push(t.Context(), client(t), "example.com/tasks@"+digest(t, img), img)
	wantLine(t, err, exitcode.Usage, "a bundle is pushed under a tag")
	_, err = Push(t.Context(), client(t), "UPPER CASE", img)
	wantLine(t, err, exitcode.BadInput, "UPPER CASE")
}

func FuzzList(f *testing.F) {
	f.Add([]byte(task("a")), "tekton.dev/v1", "task", "a")
	d := decoder(f)
	f.Fuzz(func(t *testing.T, data []byte, version, kind, name string) {
		img := imageOf(t, tarOf(t, string(data)), map[string]string{annotationAPIVersion: version, annotationKind: kind, annotationName: name})
		entries, err := List(d, img)
		if err == nil && (len(entries) != 1 || entries[0].Name != name) {
			t.Errorf("%+v of %q", entries, data)
		}
		if err != nil && slices.ContainsFunc([]rune(err.Error()), func(r rune) bool { return r == '\n' || r == '\r' }) {
			t.Errorf("more than one line: %q", err)
		}
	})
}
