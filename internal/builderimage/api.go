package builderimage

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// errNoAPI says that two lists of interfaces have nothing in common.
var errNoAPI = errors.New("no common version")

// Negotiate returns the highest version that both lists have.
func Negotiate(ours, theirs []string) (string, error) {
	var best string
	for _, v := range ours {
		if slices.ContainsFunc(theirs, func(t string) bool { return compare(v, t) == 0 }) && (best == "" || compare(v, best) > 0) {
			best = v
		}
	}
	if best == "" {
		return "", errNoAPI
	}
	return best, nil
}

// Has tells whether the list has the version.
func Has(list []string, version string) bool {
	return slices.ContainsFunc(list, func(v string) bool { return compare(v, version) == 0 })
}

// compare orders versions by their numbers: 0.9 comes before 0.10, and 1 is 1.0.
func compare(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if d := number(x, i) - number(y, i); d != 0 {
			return d
		}
	}
	return 0
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return -1 // no version at all: before every other
	}
	return n
}
