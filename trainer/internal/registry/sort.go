package registry

import (
	"cmp"
	"slices"
)

func sortVersions(vs []Version) {
	slices.SortFunc(vs, func(a, b Version) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Version, b.Version))
	})
}

func aliasesOf(aliases map[string]Pointer, version string) []string {
	var names []string
	for name, p := range aliases {
		if p.Version == version {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
