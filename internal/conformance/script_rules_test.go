package conformance

import (
	"path"
	"regexp"
	"slices"
)

func scriptRules() []rule {
	return []rule{
		{"I-80: no value is pasted into a script", noPasting, [][2]string{
			{"      command: [/cnb/lifecycle/exporter]\n", "      script: |\n        #!/bin/sh\n        echo \"$(params.app-image)\"\n"},
			{"      command: [/cnb/lifecycle/exporter]\n", "      command: [sh, -c, \"echo $(params.app-image)\"]\n"},
			{"      command: [/cnb/lifecycle/exporter]\n", "      command: [/bin/bash]\n      args: [-ec, \"echo $(params.app-image)\"]\n"},
		}},
		{"no step needs a shell", noShell, [][2]string{
			{"      command: [/cnb/lifecycle/exporter]\n", "      command: [sh, -c, exporter]\n"},
			{"      command: [/cnb/lifecycle/exporter]\n", "      script: exporter\n"},
		}},
	}
}

var (
	substitution = regexp.MustCompile(`\$\((params|tasks|finally|context|workspaces|steps|results)\.`)
	shells       = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"}
)

func noPasting(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		for _, s := range t.Spec.Steps {
			if substitution.MatchString(s.Script) {
				f.addf("Task %s: the script of step %s has a value pasted in", name, s.Name)
			}
			if len(s.Command) == 0 || !slices.Contains(shells, path.Base(s.Command[0])) {
				continue
			}
			for _, word := range slices.Concat(s.Command, s.Args) {
				if substitution.MatchString(word) {
					f.addf("Task %s: step %s hands a value to a shell as code: %s", name, s.Name, word)
				}
			}
		}
	}
	return f
}

func noShell(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		for _, s := range t.Spec.Steps {
			if s.Script != "" {
				f.addf("Task %s: step %s is a script", name, s.Name)
			}
			if len(s.Command) > 0 && slices.Contains(shells, path.Base(s.Command[0])) {
				f.addf("Task %s: step %s runs a shell", name, s.Name)
			}
		}
	}
	return f
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
