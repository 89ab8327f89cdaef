package settings

import (
	"errors"
	"fmt"
	"strings"
)

// buildFlags reads the flags of `go build`.
func buildFlags(e Env) ([]string, error) {
	flags, err := splitWords(e.get("BP_GO_BUILD_FLAGS"), e.get)
	if err != nil {
		return nil, fmt.Errorf("BP_GO_BUILD_FLAGS: %w", err)
	}
	for _, f := range flags {
		if err := checkFlag(f); err != nil {
			return nil, fmt.Errorf("BP_GO_BUILD_FLAGS: %s: %w", f, err)
		}
	}
	if value, ok := e.Lookup("BP_GO_BUILD_LDFLAGS"); ok {
		if flags, err = setLDFlags(flags, value, e.get); err != nil {
			return nil, fmt.Errorf("BP_GO_BUILD_LDFLAGS: %w", err)
		}
	}
	// What go-build adds unless the project decides otherwise.
	if !hasFlag(flags, "-buildmode") {
		flags = append(flags, "-buildmode", "pie")
	}
	if !hasFlag(flags, "-trimpath") {
		flags = append(flags, "-trimpath")
	}
	return flags, nil
}

func hasFlag(flags []string, name string) bool {
	for _, f := range flags {
		if strings.HasPrefix(f, name) {
			return true
		}
	}
	return false
}

// checkFlag refuses what would undo something that the buildpack relies on.
func checkFlag(flag string) error {
	name, _, _ := strings.Cut(flag, "=")
	switch {
	case strings.HasPrefix(flag, "--"):
		return errors.New("write it with one dash, or Paketo adds its own beside it")
	case name == "-o":
		return errors.New("the programs go into a layer of the image")
	case name == "-C":
		return errors.New("use BP_GO_WORKDIR or BP_GO_WORK_USE")
	case name == "-n":
		return errors.New("nothing would be built")
	}
	return nil
}

// setLDFlags replaces or adds the linker's flags. The value is read as if it were
// in double quotes, and has to remain one word.
func setLDFlags(flags []string, value string, getenv func(string) string) ([]string, error) {
	words, err := splitWords(`-ldflags="`+value+`"`, getenv)
	if err != nil {
		return nil, err
	}
	if len(words) != 1 {
		return nil, errors.New(`a " in the value ends it: write \"`)
	}
	set := false
	for i, f := range flags {
		if f == "-ldflags" {
			return nil, errors.New("BP_GO_BUILD_FLAGS has -ldflags too, its value a word of its own: leave one of them out")
		}
		if strings.HasPrefix(f, "-ldflags") {
			flags[i], set = words[0], true
		}
	}
	if !set {
		flags = append(flags, words[0])
	}
	return flags, nil
}
