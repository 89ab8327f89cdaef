package prune

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Report is what was deleted, or would be.
type Report struct {
	Namespace string  `json:"namespace"`
	DryRun    bool    `json:"dry_run"`
	Runs      int     `json:"runs"` // that were looked at
	Deleted   []Entry `json:"deleted"`
	Left      []Left  `json:"left"` // beyond a limit, and not deleted
	Claims    int     `json:"claims"`
	Freed     int64   `json:"freed_bytes"`
}

// Entry is a run that was deleted.
type Entry struct {
	Name   string    `json:"name"`
	Group  string    `json:"group"`
	Ended  time.Time `json:"ended"`
	Reason Reason    `json:"reason"`
	Claims []Claim   `json:"claims"`
}

// Left is a run that was to be deleted and was not.
type Left struct {
	Name   string `json:"name"`
	Why    string `json:"why"`
	Failed bool   `json:"failed"` // it should have worked
}

func (r *Report) add(c Choice, claims []Claim) {
	if claims == nil {
		claims = []Claim{}
	}
	r.Deleted = append(r.Deleted, Entry{c.Name, c.Group, c.Ended.UTC(), c.Reason, claims})
	for _, claim := range claims {
		r.Claims++
		r.Freed += claim.Size
	}
}

// Err is an error if a deletion failed.
func (r *Report) Err() error {
	var failed []Left
	for _, l := range r.Left {
		if l.Failed {
			failed = append(failed, l)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return exitcode.Errorf(exitcode.IO, "%d of %d runs could not be deleted, the first, %s: %s",
		len(failed), len(failed)+len(r.Deleted), failed[0].Name, failed[0].Why)
}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) {
	deleted := "deleted"
	if r.DryRun {
		deleted = "would delete"
	}
	for _, e := range r.Deleted {
		fmt.Fprintf(w, "%s %s (%s), ended %s, %s\n", deleted, e.Name, e.Group, e.Ended.Format(time.RFC3339),
			map[Reason]string{TooMany: "newer ones are enough", TooOld: "too old"}[e.Reason])
		for _, c := range e.Claims {
			fmt.Fprintf(w, "  with claim %s, %s\n", c.Name, size(c.Size))
		}
	}
	for _, l := range r.Left {
		fmt.Fprintf(w, "left %s: %s\n", l.Name, l.Why)
	}
	fmt.Fprintf(w, "Namespace %s: %s %d of %d runs, with %d claims of %s\n", r.Namespace, deleted, len(r.Deleted), r.Runs, r.Claims, size(r.Freed))
}

func size(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }
