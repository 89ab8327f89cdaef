package imagelock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/exitcode"
)

func TestParseMirror(t *testing.T) {
	tests := map[string]struct {
		want      imagelock.Mirror
		name, url string // of docker.io/library/registry:3.1.2
		insecure  []string
	}{
		"":                                   {name: "docker.io/library/registry:3.1.2", url: "https://"},
		"mirror.test":                        {imagelock.Mirror{Host: "mirror.test"}, "mirror.test/library/registry:3.1.2", "https://mirror.test", nil},
		"mirror.test:5000/":                  {imagelock.Mirror{Host: "mirror.test:5000"}, "mirror.test:5000/library/registry:3.1.2", "https://mirror.test:5000", nil},
		"https://mirror.test":                {imagelock.Mirror{Host: "mirror.test"}, "mirror.test/library/registry:3.1.2", "https://mirror.test", nil},
		"http://10.0.0.1:5000":               {imagelock.Mirror{Host: "10.0.0.1:5000", PlainHTTP: true}, "10.0.0.1:5000/library/registry:3.1.2", "http://10.0.0.1:5000", []string{"10.0.0.1:5000"}},
		"10.0.0.1:5000":                      {imagelock.Mirror{Host: "10.0.0.1:5000"}, "10.0.0.1:5000/library/registry:3.1.2", "https://10.0.0.1:5000", nil},
		"harbor.test/public/upstream":        {imagelock.Mirror{Host: "harbor.test", Prefix: "public/upstream"}, "harbor.test/public/upstream/library/registry:3.1.2", "https://harbor.test/public/upstream", nil},
		"http://harbor.test:8080/public-all": {imagelock.Mirror{Host: "harbor.test:8080", Prefix: "public-all", PlainHTTP: true}, "harbor.test:8080/public-all/library/registry:3.1.2", "http://harbor.test:8080/public-all", []string{"harbor.test:8080"}},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := imagelock.ParseMirror(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if name := got.Name("docker.io/library/registry:3.1.2"); name != test.name {
				t.Errorf("the image is at %s, want %s", name, test.name)
			}
			if url := got.URL(); url != test.url {
				t.Errorf("URL %s, want %s", url, test.url)
			}
			if diff := cmp.Diff(test.insecure, got.Insecure()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseMirrorRefuses(t *testing.T) {
	for _, text := range []string{"http://", "https:///a", "/a", "ftp://mirror.test", "mirror.test//", "mirror.test/Public", "mirror.test/a//b",
		"user@mirror.test", "mirror.test?x", "mirror.test/a?x", "mirror.test:port", "a b", "mirror.test/a:1", "mirror.test:", "mirror.test:/a"} {
		got, err := imagelock.ParseMirror(text)
		if err == nil {
			t.Errorf("%q is read as %+v", text, got)
		} else if exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q: exit code %d", text, exitcode.Of(err))
		}
	}
}

// FuzzParseMirror: what is read is a host, and a name by it an image.
func FuzzParseMirror(f *testing.F) {
	for _, text := range []string{"", "mirror.test", "http://10.0.0.1:5000/a/b", "https://[::1]:5000", "//", "mirror.test/../a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mirror, err := imagelock.ParseMirror(text)
		if err != nil {
			return
		}
		if _, err := imagelock.Canonical(mirror.Name("docker.io/library/registry:3.1.2")); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
