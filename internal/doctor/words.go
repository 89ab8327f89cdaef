package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/schedule"
)

func sortedNames[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// and joins words as a sentence does: "a", "a and b", "a, b and c".
func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// amounts writes what is asked for, the usual resources first.
func amounts(l corev1.ResourceList) string {
	var words []string
	names := sortedNames(l)
	for _, name := range names {
		if q := l[name]; q.Sign() > 0 {
			words = append(words, schedule.Amount(name, q))
		}
	}
	if len(words) == 0 {
		return "nothing in particular"
	}
	return and(words)
}

// for a length of time, as a person says it.
func ago(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// first returns at most n of the words, and how many more there are.
func first(words []string, n int) []string {
	if len(words) <= n {
		return words
	}
	return append(slices.Clone(words[:n]), fmt.Sprintf("%d more", len(words)-n))
}
