package lineage

import (
	"fmt"
	"strings"
	"time"
)

// Status of an artifact after a check.
type Status string

// What a check can find.
const (
	OK        Status = "ok"
	Mismatch  Status = "MISMATCH"
	Missing   Status = "MISSING"
	Untraced  Status = "UNTRACED"    // no record says where it came from
	Unchecked Status = "not checked" // nothing here can check it: an image, a commit, a corpus kept elsewhere
)

// Node is a line of the tree, with what it rests on below.
type Node struct {
	Label    string
	Status   Status // "" where there is nothing to check
	Children []*Node
}

func (n *Node) add(label string, s Status) *Node {
	c := &Node{Label: label, Status: s}
	n.Children = append(n.Children, c)
	return c
}

// Tree draws everything that led to a model and everything that judged it.
// Status says what a check found for an artifact of a record.
func Tree(recs []*Record, model string, status func(Artifact) Status) *Node {
	t := &tree{recs: recs, status: status, seen: map[*Record]bool{}, said: map[string]string{}}
	root := &Node{Label: "model " + model}
	var made bool
	for _, r := range recs {
		for _, out := range r.Outputs {
			if out.Kind == KindModel && out.SHA256 == model {
				root.Label = fmt.Sprintf("model %s (%s)", model, out.Name)
				root.Status = status(out)
				made = true
				t.record(root, r)
				break
			}
		}
	}
	if !made {
		root.Status = Untraced
	}
	for _, r := range recs {
		for _, in := range r.Inputs {
			if in.SHA256 == model && !t.seen[r] {
				t.record(root, r)
			}
		}
	}
	return root
}

type tree struct {
	recs   []*Record
	status func(Artifact) Status
	seen   map[*Record]bool // also what keeps a cycle from being followed
	said   map[string]string
}

// once says something the first time and refers back to it afterwards: the
// stages of a run mostly share machine and code, and a difference must show.
func (t *tree) once(what, value, stage string) string {
	key := what + " " + value
	if first, ok := t.said[key]; ok {
		return what + " as of " + first
	}
	t.said[key] = stage
	return key
}

func (t *tree) record(parent *Node, r *Record) {
	if t.seen[r] {
		parent.add(fmt.Sprintf("%s (above)", r.Stage), "")
		return
	}
	t.seen[r] = true
	n := parent.add(fmt.Sprintf("%s %s, run %s, %s, %.1f s working, %.1f s waiting",
		r.Stage, r.Outcome, r.RunID, r.Started.UTC().Format(time.RFC3339), r.Working, r.Waiting), "")
	n.add(t.once("machine", r.Host.String(), r.Stage), "")
	n.add(t.once("code", r.Code.String(), r.Stage), "")
	if s := Settings(r); s != "" {
		n.add("settings "+s, "")
	}
	for _, out := range r.Outputs {
		n.add("made "+artifactLabel(out), t.status(out))
	}
	var makers []*Record
	for _, in := range r.Inputs {
		n.add("from "+artifactLabel(in), t.status(in))
		if m := maker(t.recs, r, in); m != nil {
			makers = append(makers, m)
		}
	}
	done := map[*Record]bool{}
	for _, m := range makers {
		if !done[m] {
			done[m] = true
			t.record(n, m)
		}
	}
}

// maker finds the record that made an input of by.
func maker(recs []*Record, by *Record, in Artifact) *Record {
	for _, r := range recs {
		if r != by && r.produced(in) {
			return r
		}
	}
	return nil
}

func artifactLabel(a Artifact) string {
	id := a.ID()
	if len(id) > 12 {
		id = id[:12]
	}
	s := fmt.Sprintf("%s %s", a.Name, id)
	if a.Kind != KindFile && a.Kind != KindData {
		s = a.Kind + " " + s
	}
	return s
}

// String is one line about the machine.
func (h Host) String() string {
	return fmt.Sprintf("%s, %s/%s, %d CPUs, GOMAXPROCS %d, %d threads, ISA %s, %s, features %s",
		h.CPU, h.OS, h.Arch, h.CPUs, h.GOMAXPROCS, h.Threads, orNone(h.ISA), h.Go, orNone(strings.Join(h.Features, " ")))
}

// String is one line about the program.
func (c Code) String() string {
	s := "image " + orNone(c.Image) + ", commit " + orNone(c.Commit)
	if c.Modified {
		s += " (modified)"
	}
	if c.Binary != "" {
		s += ", program sha256 " + c.Binary
	}
	return s + ", version " + orNone(c.Version)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
