package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSpecification(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		// As containerd calls runc.
		"create": {
			"--root /run/docker/runtime-runc/moby --log /b/log.json --log-format json --systemd-cgroup create --bundle /run/b --pid-file /run/b/init.pid c1",
			"/run/b/config.json",
		},
		"exec": {
			"--root /run/runc --log /b/log.json --log-format json exec --process /tmp/runc-process123 --detach --pid-file /b/p.pid c1", "/tmp/runc-process123",
		},
		"exec with a terminal": {"exec --console-socket /tmp/pty/s.sock --process /tmp/p --detach --pid-file /b/p.pid c1", "/tmp/p"},
		"start":                {"--root /run/runc start c1", ""},
		"state":                {"state c1", ""},
		"delete":               {"--root /run/runc delete --force c1", ""},
		"kill of all":          {"kill --all c1 9", ""},
		"update":               {"update --resources - c1", ""},
		"checkpoint":           {"checkpoint --image-path /run c1", ""},

		// Its other forms.
		"run in the working directory":  {"run c1", "config.json"},
		"create with no arguments":      {"create", "config.json"},
		"a bundle with =":               {"create --bundle=/run/b c1", "/run/b/config.json"},
		"a bundle by one dash":          {"create -bundle /run/b c1", "/run/b/config.json"},
		"a bundle by its short name":    {"create -b /run/b c1", "/run/b/config.json"},
		"the short name with =":         {"run -b=/run/b c1", "/run/b/config.json"},
		"a bundle of a relative path":   {"create --bundle ./b/ c1", "b/config.json"},
		"a bundle after the name":       {"run --detach c1 --bundle /run/b", "/run/b/config.json"},
		"two bundles":                   {"create --bundle /run/a --bundle=/run/b c1", "/run/b/config.json"},
		"switches before the bundle":    {"run --no-pivot --keep -d --no-new-keyring --no-subreaper --bundle /run/b c1", "/run/b/config.json"},
		"a switch with a value":         {"run --no-pivot=true --bundle /run/b c1", "/run/b/config.json"},
		"no value":                      {"create --bundle", "config.json"},
		"after --":                      {"create -- --bundle /run/b", "config.json"},
		"a file with =":                 {"exec --process=/tmp/p c1", "/tmp/p"},
		"a file by its short name":      {"exec -p /tmp/p c1", "/tmp/p"},
		"the file's short name with =":  {"exec -p=/tmp/p c1", "/tmp/p"},
		"switches before the file":      {"exec -t -d --no-new-privs --ignore-paused -p /tmp/p c1", "/tmp/p"},
		"an exec of a program":          {"exec c1 cat /etc/passwd", ""},
		"a program's own -p":            {"exec c1 mkdir -p /tmp/x", ""},
		"a program's own -p, after its": {"exec -p /tmp/p c1 mkdir -p /tmp/x", "/tmp/p"},
		"an exec's variables":           {"exec --env -p=x -e A=1 --process /tmp/p c1", "/tmp/p"},
		"after -- of an exec":           {"exec -- c1 -p /tmp/x", ""},

		// What only looks like a command.
		"a folder called create":      {"--root create state c1", ""},
		"a folder called exec":        {"--root exec create --bundle /run/b c1", "/run/b/config.json"},
		"a log called run":            {"--log run --debug exec -p /tmp/p c1", "/tmp/p"},
		"a container called create":   {"state create", ""},
		"a container called exec":     {"create --bundle /run/b exec", "/run/b/config.json"},
		"a pid file called --process": {"exec --pid-file --process c1 -p /tmp/x", ""},
		"a value with =":              {"--root=/run/runc --log=create exec -p /tmp/p c1", "/tmp/p"},
		"-- before the command":       {"--debug -- create -b /run/b c1", "/run/b/config.json"},
		"help":                        {"--help", ""},
		"version":                     {"-v", ""},
		"a flag without its value":    {"--root", ""},
		"a dash":                      {"- create", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := specification(strings.Fields(test.args)); got != test.want {
				t.Errorf("runc %s: %q, want %q", test.args, got, test.want)
			}
		})
	}
	// By runc's help, of 1.1.5: the options without a value.
	for command, switches := range map[string]string{
		"":       "debug systemd-cgroup help h version v",
		"create": "no-pivot no-new-keyring",
		"run":    "detach d keep no-subreaper no-pivot no-new-keyring",
		"exec":   "tty t detach d no-new-privs ignore-paused",
	} {
		for name := range strings.FieldsSeq(switches) {
			args := []string{command, "--" + name, "-b", "/b/", "-p", "/b/config.json", "c1"}
			if command == "" {
				args = append([]string{"-" + name, "run"}, args[2:]...)
			}
			if got := specification(args); got != "/b/config.json" {
				t.Errorf("%q: %q", args, got)
			}
		}
	}
	if got := specification(nil); got != "" {
		t.Errorf("no arguments: %q", got)
	}
}

// FuzzSpecification: whatever the arguments are, the file is one that they name.
func FuzzSpecification(f *testing.F) {
	for _, args := range []string{"create -b /b c", "exec -p=/p c", "--root x run", "exec --", "create --bundle", "-", "--=x create", "-=create"} {
		f.Add(strings.ReplaceAll(args, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		file := specification(args)
		if file == "" {
			return
		}
		named := slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, file) })
		if !named && !strings.HasSuffix(file, "config.json") {
			t.Errorf("%q: %q", args, file)
		}
		if !slices.Contains(args, "create") && !slices.Contains(args, "run") && !slices.Contains(args, "exec") {
			t.Errorf("%q without a command that has one: %q", args, file)
		}
	})
}
