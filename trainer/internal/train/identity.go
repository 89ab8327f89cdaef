package train

import "fmt"

// Fact is one named thing that decides a run's weights: a setting, or the
// digest of a file.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// fact renders a value so that equal values have equal text.
func fact(name string, value any) Fact { return Fact{name, fmt.Sprint(value)} }

// NewFact returns a fact about a value.
func NewFact(name string, value any) Fact { return fact(name, value) }

// compare names the first fact in which a checkpoint and this run differ.
func compare(where string, saved, now []Fact) error {
	old := map[string]string{}
	for _, f := range saved {
		old[f.Name] = f.Value
	}
	for _, f := range now {
		was, ok := old[f.Name]
		switch {
		case !ok:
			return fmt.Errorf("%w: resume %s: %s is %s now and was not recorded: start a new run directory", ErrMismatch, where, f.Name, f.Value)
		case was != f.Value:
			return fmt.Errorf("%w: resume %s: %s was %s and is %s now: use the first, or start a new run directory", ErrMismatch, where, f.Name, was, f.Value)
		}
		delete(old, f.Name)
	}
	for _, f := range saved {
		if _, left := old[f.Name]; left {
			return fmt.Errorf("%w: resume %s: %s was %s and is not known now: use the trainer that saved it", ErrMismatch, where, f.Name, f.Value)
		}
	}
	return nil
}
