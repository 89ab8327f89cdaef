package lineage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Checker finds the digest that an artifact has now. It returns an error that
// wraps fs.ErrNotExist when the artifact is not there, and ErrUnchecked when
// nothing here can tell.
type Checker interface {
	Digest(ctx context.Context, a Artifact) (string, error)
}

// ErrUnchecked means that an artifact cannot be checked from here.
var ErrUnchecked = errors.New("cannot be checked from here")

// Problem is one thing that does not hold.
type Problem struct {
	Status   Status
	Stage    string // whose record names the artifact
	Artifact Artifact
	Sentence string
}

// Report is the outcome of Verify.
type Report struct {
	Tree     *Node
	Problems []Problem
	Checked  int // artifacts whose digest was compared
}

// Mismatched says whether a digest was found to be another one, as opposed to
// something being missing.
func (r *Report) Mismatched() bool {
	for _, p := range r.Problems {
		if p.Status == Mismatch {
			return true
		}
	}
	return false
}

// Add notes one more thing that does not hold.
func (r *Report) Add(s Status, stage string, a Artifact, sentence string) {
	r.Problems = append(r.Problems, Problem{s, stage, a, sentence})
}

// Verify checks every artifact that led to the model, or judged it, against
// what is there, and every link of the chain: what a stage used must be what
// another stage made, or come from outside. It returns an error only when it
// could not look; what it found is in the report.
func Verify(ctx context.Context, recs []*Record, model string, c Checker) (*Report, error) {
	v := &verifier{recs: recs, found: map[Artifact]Status{}, rep: &Report{}}
	for _, r := range recs {
		for _, a := range r.Outputs {
			if err := v.check(ctx, c, r, a); err != nil {
				return nil, err
			}
		}
		for _, a := range r.Inputs {
			if err := v.check(ctx, c, r, a); err != nil {
				return nil, err
			}
			v.link(r, a)
		}
	}
	v.rep.Tree = Tree(recs, model, v.status)
	if v.rep.Tree.Status == Untraced {
		v.problem(Untraced, &Record{Stage: "lineage"}, Artifact{Name: "model", Kind: KindModel, SHA256: model},
			"no record says how model %s was made", model)
	}
	return v.rep, nil
}

type verifier struct {
	recs  []*Record
	found map[Artifact]Status
	rep   *Report
}

func (v *verifier) status(a Artifact) Status { return v.found[a] }

func (v *verifier) problem(s Status, r *Record, a Artifact, format string, args ...any) {
	v.rep.Add(s, r.Stage, a, fmt.Sprintf(format, args...))
}

func (v *verifier) check(ctx context.Context, c Checker, r *Record, a Artifact) error {
	if _, done := v.found[a]; done {
		return nil
	}
	got, err := c.Digest(ctx, a)
	switch {
	case errors.Is(err, ErrUnchecked):
		v.found[a] = Unchecked
	case errors.Is(err, fs.ErrNotExist):
		v.found[a] = Missing
		v.problem(Missing, r, a, "%s: %s with digest %s is not there", r.Stage, a.Name, a.ID())
	case err != nil:
		return fmt.Errorf("check %s of stage %s: %w", a.Name, r.Stage, err)
	case got != a.ID():
		v.rep.Checked++
		v.found[a] = Mismatch
		v.problem(Mismatch, r, a, "%s: %s is %s, the record says %s", r.Stage, a.Name, got, a.ID())
	default:
		v.rep.Checked++
		v.found[a] = OK
	}
	return nil
}

// link asks where an input came from. A model with a URI is one of a registry,
// where it has a lineage of its own.
func (v *verifier) link(r *Record, a Artifact) {
	if a.External() || maker(v.recs, r, a) != nil || (a.Kind == KindModel && a.URI != "") {
		return
	}
	if v.found[a] == OK || v.found[a] == Unchecked {
		v.found[a] = Untraced
	}
	for _, other := range v.recs {
		for _, out := range other.Outputs {
			if other != r && out.Name == a.Name {
				v.problem(Untraced, r, a, "%s used %s %s, but %s made %s", r.Stage, a.Name, a.ID(), other.Stage, out.ID())
				return
			}
		}
	}
	v.problem(Untraced, r, a, "%s used %s %s, which no record made", r.Stage, a.Name, a.ID())
}

// Print writes the tree and, below it, what does not hold.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	printNode(&b, r.Tree, "", "")
	fmt.Fprintf(&b, "artifacts checked: %d, problems: %d\n", r.Checked, len(r.Problems))
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  - %s: %s\n", p.Status, oneLine(p.Sentence))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printNode(b *strings.Builder, n *Node, first, rest string) {
	b.WriteString(first + oneLine(n.Label))
	if n.Status != "" {
		fmt.Fprintf(b, "  [%s]", n.Status)
	}
	b.WriteString("\n")
	for i, c := range n.Children {
		if i == len(n.Children)-1 {
			printNode(b, c, rest+"└─ ", rest+"   ")
		} else {
			printNode(b, c, rest+"├─ ", rest+"│  ")
		}
	}
}

// oneLine keeps control characters of a record, which others may have written,
// away from the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return '�'
		}
		return r
	}, s)
}
