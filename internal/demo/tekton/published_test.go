package tekton_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	triggers "github.com/tektoncd/triggers/pkg/apis/triggers/v1alpha1"

	"github.com/trainyard/trainyard/internal/demo/tekton"
)

// asReleased does what tekton/publish.yaml does, on text: ko replaces whole
// values, and sed these three patterns.
func asReleased(t *testing.T, release tekton.Release, images map[string]string) map[string]*unstructured.Unstructured {
	t.Helper()
	sed := []*regexp.Regexp{
		regexp.MustCompile(`((?:pipeline|triggers)\.tekton\.dev/release): "devel"`),
		regexp.MustCompile(`(app\.kubernetes\.io/version): "devel"`),
		regexp.MustCompile(`(version): "devel"`),
	}
	objects := make(map[string]*unstructured.Unstructured)
	err := fs.WalkDir(release.FS, "config", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".yaml") {
			return err
		}
		data, err := fs.ReadFile(release.FS, file)
		if err != nil {
			return err
		}
		text := string(data)
		for importPath, image := range images {
			text = regexp.MustCompile(`ko://`+regexp.QuoteMeta(importPath)+`(["\s])`).ReplaceAllString(text, image+"$1")
		}
		for _, pattern := range sed {
			text = pattern.ReplaceAllString(text, `$1: "`+release.Version+`"`)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
		for {
			one := new(unstructured.Unstructured)
			if err := decoder.Decode(one); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if len(one.Object) > 0 {
				objects[identity(one)] = one
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func identity(one *unstructured.Unstructured) string {
	return one.GetKind() + " " + one.GetNamespace() + "/" + one.GetName()
}

func TestRenderDiffersFromTheReleaseInTheSettingsAlone(t *testing.T) {
	releases := pinned(t)
	images := imagesFor(t, releases)
	want := make(map[string]*unstructured.Unstructured)
	for _, release := range releases {
		for id, one := range asReleased(t, release, images) {
			want[id] = one
		}
	}
	// What the restricted namespace needs, set by hand.
	set := func(id, value string, path ...string) {
		t.Helper()
		before, _, _ := unstructured.NestedString(want[id].Object, path...)
		t.Logf("%s %v: %q becomes %q", id, path, before, value)
		if err := unstructured.SetNestedField(want[id].Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	set("ConfigMap tekton-pipelines/feature-flags", "true", "data", "set-security-context")
	controller := want["Deployment tekton-pipelines/tekton-pipelines-controller"].Object
	args := controller["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["args"].([]any)
	args[slices.Index(args, any("-shell-image"))+1] = shellImage

	groups, err := tekton.Render(tekton.Settings{Images: images, ShellImage: shellImage}, releases...)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]*unstructured.Unstructured)
	for _, group := range groups {
		for _, one := range group.Objects {
			got[identity(one)] = one
		}
	}
	if len(got) < 90 {
		t.Errorf("only %d objects", len(got))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rendered differs (-released +rendered):\n%s", diff)
	}
}

func TestRenderKeepsTheShellImageOfTheManifestsUnlessAnotherIsGiven(t *testing.T) {
	releases := pinned(t)
	published, err := releases[0].ShellImage()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": published, shellImage: shellImage} {
		settings := tekton.Settings{Images: imagesFor(t, releases), ShellImage: given}
		stream := renderYAML(t, settings, releases...)
		if !strings.Contains(stream, "- -shell-image\n        - "+want+"\n") {
			t.Errorf("with %q given, scripts do not start from %s", given, want)
		}
	}
}

func TestRenderTurnsOnWhatIsOff(t *testing.T) {
	releases := pinned(t)
	settings := tekton.Settings{Images: imagesFor(t, releases)}
	releases[0].FS = edited{releases[0].FS, "config/resolvers/config-feature-flags.yaml", `"true"`, "\x00"}
	stream := renderYAML(t, settings, releases[0])
	for _, want := range []string{`set-security-context: "true"`, `enable-bundles-resolver: "true"`, `enable-git-resolver: "true"`,
		`enable-cluster-resolver: "true"`, `enable-http-resolver: gone`} {
		if !strings.Contains(stream, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if stream := renderYAML(t, tekton.Settings{Images: smallImages()}, small(nil)); !strings.Contains(stream, "- -el-security-context=true\n") {
		t.Errorf("the switch stays off:\n%s", stream)
	}
}

func renderYAML(t *testing.T, settings tekton.Settings, releases ...tekton.Release) string {
	t.Helper()
	groups, err := tekton.Render(settings, releases...)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, group := range groups {
		stream, err := group.YAML()
		if err != nil {
			t.Fatal(err)
		}
		all.Write(stream)
	}
	return all.String()
}

func TestEveryObjectDecodesStrictlyIntoItsType(t *testing.T) {
	releases := pinned(t)
	stream := renderYAML(t, tekton.Settings{Images: imagesFor(t, releases), ShellImage: shellImage}, releases...)
	if strings.Contains(stream, "ko://") {
		t.Error("a ko:// is left")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme, triggers.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := strings.Split(strings.TrimPrefix(stream, "---\n"), "\n---\n")
	for _, document := range documents {
		if _, _, err := decoder.Decode([]byte(document), nil, nil); err != nil {
			t.Errorf("%v in:\n%.300s", err, document)
		}
	}
	if len(documents) < 90 {
		t.Errorf("only %d documents", len(documents))
	}
}

func TestGroupsComeInAnOrderThatApplies(t *testing.T) {
	releases := pinned(t)
	groups, err := tekton.Render(tekton.Settings{Images: imagesFor(t, releases)}, releases...)
	if err != nil {
		t.Fatal(err)
	}
	kindsOf := make(map[string][]string)
	var names []string
	for _, group := range groups {
		names = append(names, group.Name)
		for _, one := range group.Objects {
			kindsOf[group.Name] = append(kindsOf[group.Name], one.GetKind())
		}
		kindsOf[group.Name] = slices.Compact(kindsOf[group.Name])
	}
	if diff := cmp.Diff([]string{"definitions", "configuration", "workloads", "resources"}, names); diff != "" {
		t.Error(diff)
	}
	want := map[string][]string{
		"definitions":   {"Namespace", "CustomResourceDefinition"},
		"configuration": {"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "ConfigMap", "Secret", "Service"},
		"workloads":     {"Deployment", "HorizontalPodAutoscaler", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
		"resources":     {"ClusterInterceptor"},
	}
	if diff := cmp.Diff(want, kindsOf); diff != "" {
		t.Error(diff)
	}
}

func TestRenderGivesTheSameBytesWhateverTheOrderOfReleases(t *testing.T) {
	releases := pinned(t)
	settings := tekton.Settings{Images: imagesFor(t, releases)}
	first := renderYAML(t, settings, releases[0], releases[1])
	if second := renderYAML(t, settings, releases[1], releases[0]); first != second {
		t.Error("the bytes differ")
	}
}

func TestAKindThatIsNotKnownIsAppliedBeforeTheWorkloads(t *testing.T) {
	release := small(map[string]string{"pdb.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x, namespace: y}\n"})
	groups, err := tekton.Render(tekton.Settings{Images: smallImages()}, release)
	if err != nil {
		t.Fatal(err)
	}
	if got := groups[1].Objects; len(got) != 1 || got[0].GetKind() != "PodDisruptionBudget" {
		t.Errorf("configuration is %v", got)
	}
}
