package typehint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	sum   = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	other = "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
)

func text(pairs ...string) []Result {
	var r []Result
	for i := 0; i < len(pairs); i += 2 {
		r = append(r, Result{Name: pairs[i], Text: pairs[i+1]})
	}
	return r
}

func object(name string, pairs ...string) []Result {
	o := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i]] = pairs[i+1]
	}
	return []Result{{Name: name, Object: o}}
}

// I-54: what pairs, what does not, and that what does not is told.
func TestI54PairingOfResults(t *testing.T) {
	for name, tc := range map[string]struct {
		in       []Result
		want     Hints
		problems []string
	}{
		"url and digest": {
			in:   text("IMAGE_URL", "example.com/app", "IMAGE_DIGEST", sum),
			want: Hints{Images: []string{"example.com/app@" + sum}},
		},
		"a tag in the url is dropped": {
			in:   text("IMAGE_URL", "example.com/app:v1", "IMAGE_DIGEST", sum),
			want: Hints{Images: []string{"example.com/app@" + sum}},
		},
		"two images by prefix": {
			in:   text("a_IMAGE_URL", "example.com/app", "b_IMAGE_URL", "example.com/bee", "b_IMAGE_DIGEST", other, "a_IMAGE_DIGEST", sum),
			want: Hints{Images: []string{"example.com/app@" + sum, "example.com/bee@" + other}},
		},
		// tekton catalog's buildpacks-phases 0.3
		"digest alone": {
			in:       text("APP_IMAGE_DIGEST", sum),
			problems: []string{"APP_IMAGE_DIGEST: no APP_IMAGE_URL belongs to it"},
		},
		"prefixes that differ": {
			in:       text("IMAGE_URL", "example.com/app", "APP_IMAGE_DIGEST", sum),
			problems: []string{"APP_IMAGE_DIGEST: no APP_IMAGE_URL belongs to it", "IMAGE_URL: no IMAGE_DIGEST belongs to it"},
		},
		"url without digest":  {in: text("IMAGE_URL", "example.com/app"), problems: []string{"IMAGE_URL: no IMAGE_DIGEST belongs to it"}},
		"digest without kind": {in: text("IMAGE_URL", "example.com/app", "IMAGE_DIGEST", sum[7:]), problems: []string{`IMAGE_URL: "example.com/app@` + sum[7:] + `" is no image by digest`}},
		"newline at the end": {
			in:       text("IMAGE_URL", "example.com/app\n", "IMAGE_DIGEST", sum),
			want:     Hints{Images: []string{"example.com/app@" + sum}},
			problems: []string{"IMAGE_URL: has white space around its value, which Tekton hands on"},
		},
		"empty": {in: text("IMAGE_URL", "", "IMAGE_DIGEST", ""), problems: []string{"IMAGE_URL: is empty", "IMAGE_DIGEST: is empty"}},
		"list": {
			in:       text("IMAGES", "example.com/app@"+sum+"\nexample.com/bee@"+other+", \nexample.com/bee:v1"),
			want:     Hints{Images: []string{"example.com/app@" + sum, "example.com/bee@" + other}},
			problems: []string{`IMAGES: "example.com/bee:v1" is no image by digest`},
		},
		"other names say nothing": {in: text("IMAGE_REF", "example.com/app@"+sum, "url", "x", "commit", "y", "image_url", "z")},
		"git": {
			in:   text("CHAINS-GIT_URL", "https://example.com/repo", "CHAINS-GIT_COMMIT", "abc"),
			want: Hints{Git: []Artifact{{"https://example.com/repo", "abc"}}},
		},
		"git without commit": {in: text("CHAINS-GIT_URL", "https://example.com/repo"), problems: []string{"CHAINS-GIT_URL: no CHAINS-GIT_COMMIT belongs to it"}},
		"git without url":    {in: text("CHAINS-GIT_COMMIT", "abc"), problems: []string{"CHAINS-GIT_COMMIT: no CHAINS-GIT_URL belongs to it"}},
		"artifact": {
			in:   object("MODEL_ARTIFACT_OUTPUTS", "uri", "s3://b/m", "digest", sum, "isBuildArtifact", "true"),
			want: Hints{Outputs: []Artifact{{"s3://b/m", sum}}},
		},
		"input artifact": {
			in:   object("ARTIFACT_INPUTS", "uri", "s3://b/m", "digest", "sha1:0123456789012345678901234567890123456789"),
			want: Hints{Inputs: []Artifact{{"s3://b/m", "sha1:0123456789012345678901234567890123456789"}}},
		},
		"artifact as text":        {in: text("ARTIFACT_OUTPUTS", "x"), problems: []string{"ARTIFACT_OUTPUTS: is text, want an object with uri and digest"}},
		"artifact without uri":    {in: object("ARTIFACT_OUTPUTS", "digest", sum), problems: []string{"ARTIFACT_OUTPUTS: has no uri"}},
		"artifact with bad hex":   {in: object("ARTIFACT_OUTPUTS", "uri", "x", "digest", "sha256:abc"), problems: []string{`ARTIFACT_OUTPUTS: digest "sha256:abc" is not algorithm:hex`}},
		"image url as an object":  {in: append(object("IMAGE_URL", "uri", "x"), text("IMAGE_DIGEST", sum)...), problems: []string{"IMAGE_URL: is an object, want text"}},
		"nothing":                 {},
		"output of an older name": {in: object("ARTIFACT_OUTPUT", "uri", "x", "digest", sum)},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := Extract(tc.in)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("hints (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("example.com/app", sum)
	f.Add("example.com/app:v1\n", "sha256:")
	f.Fuzz(func(t *testing.T, url, digest string) {
		got, problems := Extract(text("IMAGE_URL", url, "IMAGE_DIGEST", digest, "IMAGES", url))
		if len(got.Images) == 0 && len(problems) == 0 && strings.TrimSpace(url+digest) != "" {
			t.Errorf("url %q and digest %q are skipped in silence", url, digest)
		}
		for _, i := range got.Images {
			if !strings.Contains(i, "@sha256:") {
				t.Errorf("image %q", i)
			}
		}
	})
}
