package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Write prints the report for people: problems first, then warnings, then what is
// in order.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", r.Subject, r.Summary())
	for _, group := range []struct {
		level Level
		title string
	}{{Problem, "Problems"}, {Warning, "Warnings"}, {OK, "In order"}} {
		if r.Count(group.level) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", group.title)
		for _, f := range r.Findings {
			if f.Level == group.level {
				f.write(w)
			}
		}
	}
}

func (f Finding) write(w io.Writer) {
	fmt.Fprintf(w, "  %s: %s\n", f.Check, oneLine(f.Message))
	for _, d := range f.Details {
		fmt.Fprintf(w, "      %s\n", oneLine(d))
	}
	if f.Remedy != "" {
		fmt.Fprintf(w, "    > %s\n", oneLine(f.Remedy))
	}
}

// Summary counts what is wrong, in words.
func (r *Report) Summary() string {
	problems, warnings := r.Count(Problem), r.Count(Warning)
	switch {
	case problems == 0 && warnings == 0:
		return "nothing is wrong"
	case problems == 0:
		return "nothing is wrong, " + count(warnings, "warning")
	case warnings == 0:
		return count(problems, "problem")
	}
	return count(problems, "problem") + ", " + count(warnings, "warning")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// oneLine keeps what a server or a log said from breaking the layout or driving
// the terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
