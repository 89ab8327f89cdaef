// Package util holds the list of paths that an image build leaves alone.
package util

// IgnoreListEntry names one path.
type IgnoreListEntry struct {
	Path            string
	PrefixMatchOnly bool
}

// AddToDefaultIgnoreList does nothing: nothing is built.
func AddToDefaultIgnoreList(IgnoreListEntry) {}
