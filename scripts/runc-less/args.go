package main

import (
	"path/filepath"
	"strings"
)

// specification is the file in runc's arguments that says which capabilities a
// process gets: a bundle's config.json, or the process file of an exec; "" where
// there is none.
func specification(args []string) string {
	command := ""
	for len(args) > 0 && command == "" {
		var found flag
		if found, args = cut(args); found.name == "" && found.value != "--" {
			command = found.value
		}
	}
	switch command {
	case "create", "run":
		// Without the flag runc takes the working directory. Flags count after the
		// container's name too.
		return filepath.Join(last(args, true, "bundle", "b"), "config.json")
	case "exec":
		// What follows the container's name is the program's.
		return last(args, false, "process", "p")
	}
	return ""
}

// last returns the value of the last flag with one of these names: the one that
// counts.
func last(args []string, afterOthers bool, long, short string) string {
	value := ""
	for len(args) > 0 {
		if args[0] == "--" {
			break
		}
		var found flag
		found, args = cut(args)
		switch found.name {
		case long, short:
			value = found.value
		case "":
			if !afterOthers {
				return value
			}
		}
	}
	return value
}

// flag is a flag with its value, or, without a name, another argument.
type flag struct{ name, value string }

// cut cuts the first flag or argument off: -name value, --name value or
// --name=value, and switches without a value.
func cut(args []string) (flag, []string) {
	first, rest := args[0], args[1:]
	name, isFlag := strings.CutPrefix(first, "-")
	name, value, given := strings.Cut(strings.TrimPrefix(name, "-"), "=")
	if !isFlag || name == "" {
		return flag{value: first}, rest
	}
	if !given && !isSwitch(name) && len(rest) > 0 {
		value, rest = rest[0], rest[1:]
	}
	return flag{name, value}, rest
}

// isSwitch says which flags of runc (of 1.1 to 1.4) have no value.
func isSwitch(name string) bool {
	switch name {
	case "debug", "systemd-cgroup", "help", "h", "version", "v", // before the command
		"no-pivot", "no-new-keyring", "keep", "no-subreaper", // of create and run
		"tty", "t", "no-new-privs", "ignore-paused", // of exec
		"detach", "d": // of run and exec
		return true
	}
	return false
}
