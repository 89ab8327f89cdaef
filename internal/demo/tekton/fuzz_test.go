package tekton

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzReplace: a text comes back with no import path left, or not at all, and
// what is around import paths comes back as it was.
func FuzzReplace(f *testing.F) {
	const known = "example.com/cmd/known"
	image := "registry.test/known@sha256:" + strings.Repeat("0", 64)
	for _, text := range []string{"", "plain", "ko://" + known, "-image=ko://" + known + ",x", "ko://", "ko://other", "kko://ko://" + known, "ko://" + known + "/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := imageSet{known: image}.replace(text)
		if err != nil {
			if !strings.Contains(text, scheme) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if strings.Contains(got, scheme) {
			t.Fatalf("%q became %q", text, got)
		}
		// Another way to do it, right where every path in the text is known.
		if want := strings.ReplaceAll(text, scheme+known, image); got != want {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
	})
}

// FuzzDecode: a stream decodes into objects that, written and decoded again, are
// the same objects, or it is an error.
func FuzzDecode(f *testing.F) {
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, stream := range []string{"", one, "---\n" + one + "--- # next\n" + one, one + "...\n", "--- {apiVersion: v1, kind: A, metadata: {name: b}}",
		one + "data:\n  a: |\n    ---\n    x\n", "%YAML 1.1\n---\n" + one, one + "x: 9007199254740993\ny: 1.5\n", "a: &a [*a]", "---\r\n" + one, one + "? {a: b}\n: c\n"} {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := decode("f", data)
		if err != nil {
			return
		}
		var group Group
		for _, one := range first {
			group.Objects = append(group.Objects, one.Unstructured)
		}
		stream, err := group.YAML()
		if err != nil {
			t.Fatal(err)
		}
		second, err := decode("f", stream)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, stream)
		}
		if len(first) != len(second) {
			t.Fatalf("%d objects became %d", len(first), len(second))
		}
		for i := range first {
			if !reflect.DeepEqual(first[i].Object, second[i].Object) {
				t.Fatalf("%v became %v", first[i].Object, second[i].Object)
			}
		}
	})
}

func TestSplitCutsAtMarkersOnly(t *testing.T) {
	tests := map[string]struct {
		stream string
		want   []string
	}{
		"nothing":                    {"", []string{""}},
		"one document":               {"a: b\n", []string{"a: b\n"}},
		"two":                        {"a\n---\nb\n", []string{"a\n", "\nb\n"}},
		"a comment at the marker":    {"a\n--- # two\nb\n", []string{"a\n", " # two\nb\n"}},
		"an object at the marker":    {"--- {a: b}\n", []string{"", " {a: b}\n"}},
		"an end marker":              {"a\n...\n---\nb", []string{"a\n", "\n", "\nb"}},
		"dashes in a block":          {"a: |\n  ---\n  b\n", []string{"a: |\n  ---\n  b\n"}},
		"a word that starts so":      {"---a: b\n", []string{"---a: b\n"}},
		"a marker at the end":        {"a\n---", []string{"a\n", ""}},
		"line ends of another world": {"a\r\n---\r\nb\r\n", []string{"a\r\n", "\r\nb\r\n"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, document := range split([]byte(test.stream)) {
				got = append(got, string(document))
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEachStringReachesEveryString(t *testing.T) {
	tree := map[string]any{
		"a": "x", "n": int64(1), "null": nil,
		"list": []any{"x", map[string]any{"b": "x"}, []any{"x"}, true},
		"map":  map[string]any{"c": "x"},
	}
	var keys []string
	err := eachString(tree, func(key, text string) (string, error) {
		keys = append(keys, key)
		return text + "y", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": "xy", "n": int64(1), "null": nil,
		"list": []any{"xy", map[string]any{"b": "xy"}, []any{"xy"}, true},
		"map":  map[string]any{"c": "xy"},
	}
	if !reflect.DeepEqual(tree, want) {
		t.Errorf("got %v", tree)
	}
	if want := []string{"a", "list", "b", "list", "c"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

func TestEachStringGoesThroughKeysInOrder(t *testing.T) {
	tree := make(map[string]any)
	for _, key := range strings.Split("qwertyuiopasdfghjklzxcvbnm", "") {
		tree[key] = key
	}
	var keys strings.Builder
	err := eachString(tree, func(key, text string) (string, error) {
		keys.WriteString(key)
		return text, nil
	})
	if want := "abcdefghijklmnopqrstuvwxyz"; err != nil || keys.String() != want {
		t.Errorf("order %s (%v), want %s", keys.String(), err, want)
	}
}

func TestYAMLKeepsLargeNumbers(t *testing.T) {
	one := &unstructured.Unstructured{Object: map[string]any{"n": int64(9007199254740993)}}
	got, err := Group{Objects: []*unstructured.Unstructured{one}}.YAML()
	if err != nil || !bytes.Contains(got, []byte("9007199254740993")) {
		t.Errorf("%s (%v)", got, err)
	}
}
