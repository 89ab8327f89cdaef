package times

import (
	"slices"
	"time"
)

// span is a length of time.
type span struct{ from, to time.Time }

func (s span) seconds() float64 { return seconds(s.from, s.to) }

// covered is how many seconds at least one of the spans covers: tasks that run
// side by side count once.
func covered(spans []span) float64 {
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b span) int { return a.from.Compare(b.from) })
	var sum float64
	var end time.Time
	for _, s := range sorted {
		if end.IsZero() || s.from.After(end) {
			end = s.from
		}
		if s.to.After(end) {
			sum += s.to.Sub(end).Seconds()
			end = s.to
		}
	}
	return sum
}

// median of numbers; 0 of none.
func median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(numbers))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
