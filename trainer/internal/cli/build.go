package cli

import (
	"cmp"
	"runtime/debug"

	"github.com/trainyard/trainyard/trainer/internal/train"
)

// Build is what the linker stamped into the binary.
type Build struct{ Version, Commit string }

// known is the build as far as anything tells. Lineage gets what was linked: it
// looks up the rest itself, and whether the checkout was modified besides.
func (b Build) known() Build {
	info, _ := debug.ReadBuildInfo() // nil when there is none
	return b.orStamped(info)
}

// orStamped fills in what only Go itself stamped: a plain go build in a checkout
// names version and commit too.
func (b Build) orStamped(info *debug.BuildInfo) Build {
	if info == nil {
		return b
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if b.Commit == "" && s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (b Build) version() string { return cmp.Or(b.known().Version, "unknown") }

func (b Build) facts() []train.Fact {
	return []train.Fact{train.NewFact("version", b.version()), train.NewFact("commit", b.known().Commit)}
}
