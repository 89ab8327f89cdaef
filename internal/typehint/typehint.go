package typehint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Names by which Chains recognises results; those with a suffix may have anything
// before it, and what is the same before it belongs together.
const (
	imageURL        = "IMAGE_URL"
	imageDigest     = "IMAGE_DIGEST"
	images          = "IMAGES"
	artifactOutputs = "ARTIFACT_OUTPUTS"
	artifactInputs  = "ARTIFACT_INPUTS"
	gitURL          = "CHAINS-GIT_URL"
	gitCommit       = "CHAINS-GIT_COMMIT"
)

// Result is a result with its value: an object where Object is not nil, else text.
type Result struct {
	Name   string
	Text   string
	Object map[string]string
}

// Artifact is something with an address and a digest, algorithm:hex.
type Artifact struct{ URI, Digest string }

// Hints is what Chains makes of results, sorted.
type Hints struct {
	Images  []string   // repository@digest
	Outputs []Artifact // built from ARTIFACT_OUTPUTS
	Inputs  []Artifact // built from ARTIFACT_INPUTS
	Git     []Artifact // one, or none: address and commit
}

// Extract reads results as Chains does. The second value names, in the order of the
// results' names, each hint that Chains would skip, and each value that others who
// do not trim it could not use.
func Extract(results []Result) (Hints, []string) {
	e := extractor{byName: map[string]Result{}}
	for _, r := range results {
		e.byName[r.Name] = r
	}
	for _, n := range slices.Sorted(maps.Keys(e.byName)) {
		r := e.byName[n]
		switch {
		case n == images:
			e.list(r)
		case strings.HasSuffix(n, imageURL):
			e.image(r)
		case strings.HasSuffix(n, imageDigest):
			if _, ok := e.byName[strings.TrimSuffix(n, imageDigest)+imageURL]; !ok {
				e.skip(n, "no "+strings.TrimSuffix(n, imageDigest)+imageURL+" belongs to it")
			}
		case strings.HasSuffix(n, artifactOutputs):
			e.artifact(r, &e.hints.Outputs)
		case strings.HasSuffix(n, artifactInputs):
			e.artifact(r, &e.hints.Inputs)
		case n == gitURL:
			e.git(r)
		case n == gitCommit:
			if _, ok := e.byName[gitURL]; !ok {
				e.skip(n, "no "+gitURL+" belongs to it")
			}
		}
	}
	return e.hints, e.problems
}

type extractor struct {
	byName   map[string]Result
	hints    Hints
	problems []string
}

func (e *extractor) skip(name, why string) { e.problems = append(e.problems, name+": "+why) }

// text returns the trimmed value of a result, empty when it is unusable.
func (e *extractor) text(r Result) string {
	if r.Object != nil {
		e.skip(r.Name, "is an object, want text")
		return ""
	}
	t := strings.TrimSpace(r.Text)
	if t != r.Text {
		e.skip(r.Name, "has white space around its value, which Tekton hands on")
	}
	if t == "" {
		e.skip(r.Name, "is empty")
	}
	return t
}

func (e *extractor) image(r Result) {
	partner := strings.TrimSuffix(r.Name, imageURL) + imageDigest
	digest, ok := e.byName[partner]
	if !ok {
		e.skip(r.Name, "no "+partner+" belongs to it")
		return
	}
	url, sum := e.text(r), e.text(digest)
	if url == "" || sum == "" {
		return
	}
	e.reference(r.Name, url+"@"+sum)
}

func (e *extractor) reference(result, ref string) {
	d, err := name.NewDigest(ref)
	if err != nil {
		e.skip(result, fmt.Sprintf("%q is no image by digest", ref))
		return
	}
	e.hints.Images = append(e.hints.Images, d.Name())
}

func (e *extractor) list(r Result) {
	for ref := range strings.FieldsFuncSeq(r.Text, func(c rune) bool { return c == '\n' || c == ',' }) {
		if ref = strings.TrimSpace(ref); ref != "" {
			e.reference(r.Name, ref)
		}
	}
}

func (e *extractor) artifact(r Result, into *[]Artifact) {
	if r.Object == nil {
		e.skip(r.Name, "is text, want an object with uri and digest")
		return
	}
	a := Artifact{r.Object["uri"], r.Object["digest"]}
	switch {
	case a.URI == "":
		e.skip(r.Name, "has no uri")
	case !digestForm().MatchString(a.Digest):
		e.skip(r.Name, fmt.Sprintf("digest %q is not algorithm:hex", a.Digest))
	default:
		*into = append(*into, a)
	}
}

// digestForm matches the digests that Chains takes, but for spaces and capitals,
// which others would not.
func digestForm() *regexp.Regexp {
	return regexp.MustCompile(`^(sha1:[a-f0-9]{40}|sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$`)
}

func (e *extractor) git(r Result) {
	commit, ok := e.byName[gitCommit]
	if !ok {
		e.skip(r.Name, "no "+gitCommit+" belongs to it")
		return
	}
	if url, sum := e.text(r), e.text(commit); url != "" && sum != "" {
		e.hints.Git = []Artifact{{url, sum}}
	}
}
