package times

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Write prints a report for people.
func (r *Report) Write(w io.Writer) {
	verb := map[string]string{"succeeded": "succeeded after", "failed": "failed after", "running": "runs for"}[r.State]
	fmt.Fprintf(w, "%s %s/%s %s %s s\n\n", r.Kind, r.Namespace, r.Name, verb, number(r.Total))
	if len(r.Tasks) > 0 {
		table := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "waiting\tpulling\tstarting\tworking\tending\ttotal\toverhead\timages\t task")
		for _, t := range r.Tasks {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t %s\n", maybe(t.Waiting), maybe(t.Pulling), maybe(t.Starting), number(t.Working), maybe(t.Ending), number(t.Total), number(t.Overhead), t.Images, r.title(t))
		}
		_ = table.Flush() // of a writer that fails like w's own
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "Steps worked for %s s. Tekton and Kubernetes took the other %s s", number(r.Working), number(r.Overhead))
	if n := len(r.Tasks); n > 1 {
		what := "tasks"
		if r.retried() {
			what = "attempts"
		}
		fmt.Fprintf(w, ", %s s for each of %d %s; %s s of them passed between tasks", number(r.OverheadPerTask), n, what, number(r.Between))
	}
	fmt.Fprintln(w, ".")
	for _, line := range r.pullLines() {
		fmt.Fprintln(w, line)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "Note:", n+".")
	}
}

// title names a task, and what became of it when that is not to be expected.
func (r *Report) title(t Task) string {
	again := 0
	for _, other := range r.Tasks {
		if other.TaskRun == t.TaskRun {
			again++
		}
	}
	switch {
	case again > 1:
		return fmt.Sprintf("%s (attempt %d %s)", t.Name, t.Attempt, t.State)
	case t.State != "succeeded":
		return t.Name + " (" + t.State + ")"
	}
	return t.Name
}

func (r *Report) retried() bool {
	for _, t := range r.Tasks {
		if t.Attempt > 1 {
			return true
		}
	}
	return false
}

func (r *Report) pullLines() []string {
	var lines []string
	for _, t := range r.Tasks {
		for _, p := range t.Pulls {
			if p.Present {
				continue
			}
			line := fmt.Sprintf("Pulled for %s: %s", t.Name, p.Image)
			if p.Seconds != nil {
				line += fmt.Sprintf(" in %s s", number(*p.Seconds))
			}
			if p.Bytes > 0 {
				line += fmt.Sprintf(", %.1f MB", float64(p.Bytes)/1e6)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// WriteAll prints several reports, and what they have in common.
func WriteAll(w io.Writer, reports []*Report) {
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		r.Write(w)
	}
	if len(reports) > 1 {
		fmt.Fprintf(w, "\nOverhead for each task, median of %d runs: %s s\n", len(reports), number(MedianOverhead(reports)))
	}
}

// MedianOverhead is the median of what each run's tasks took beside their work.
func MedianOverhead(reports []*Report) float64 {
	var each []float64
	for _, r := range reports {
		each = append(each, r.OverheadPerTask)
	}
	return median(each)
}

func maybe(s *float64) string {
	if s == nil {
		return "?"
	}
	return number(*s)
}

// number writes seconds with one digit, where there is one.
func number(s float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(s, 'f', 1, 64), ".0")
}
