package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/exitcode"
)

const head = "[_]\nschema-version = \"0.2\"\n"

func TestParse(t *testing.T) {
	got, err := Parse([]byte(head+`
[io.buildpacks]
builder = "registry.example/builder@sha256:1"
include = ["/go.mod", "/cmd"]
[[io.buildpacks.build.env]]
name = "LDFLAGS"
value = "-X main.a=b -X 'main.c=d e'"
[[io.buildpacks.build.env]]
name = "LINES"
value = """
one
two=2
"""
[[io.buildpacks.build.env]]
name = "EMPTY"
value = ""
[[io.buildpacks.group]]
id = "a/b"
version = "1.2.3"
[[io.buildpacks.pre.group]]
id = "a/pre"
[[io.buildpacks.post.group]]
id = "a/post"
`), "project.toml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Project{
		Builder: "registry.example/builder@sha256:1", Include: []string{"/go.mod", "/cmd"},
		// "=", spaces, newlines and nothing at all arrive as they are.
		Env:   []Variable{{"LDFLAGS", "-X main.a=b -X 'main.c=d e'"}, {"LINES", "one\ntwo=2\n"}, {"EMPTY", ""}},
		Group: []Buildpack{{"a/b", "1.2.3"}}, Pre: []Buildpack{{"a/pre", ""}}, Post: []Buildpack{{"a/post", ""}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseWarnsOfKeysThatAreIgnored(t *testing.T) {
	p, err := Parse([]byte(head+"[io.buildpacks]\nincludes = [\"x\"]\n"), "project.toml")
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(p.Warnings, " "); !strings.Contains(all, "io.buildpacks.includes") {
		t.Errorf("warnings %q do not name the key", all)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ content, part string }{
		"no TOML":                {"[[[", "line 1"},
		"unknown schema version": {"[_]\nschema-version = \"9.9\"\n", "schema version 9.9"},
		"schema not a string":    {"[_]\nschema-version = 2\n", "schema-version"},
		"both lists":             {head + "[io.buildpacks]\ninclude=[\"a\"]\nexclude=[\"b\"]\n", "include and exclude"},
		"wrong type":             {head + "[io.buildpacks]\ninclude=\"a\"\n", "include"},
		"a binary file":          {"\x7fELF\x00", "zero byte"},
		"variable without name":  {head + "[[io.buildpacks.build.env]]\nvalue=\"a\"\n", `""`},
		"variable with a slash":  {head + "[[io.buildpacks.build.env]]\nname=\"../x\"\nvalue=\"a\"\n", `"../x"`},
		"variable with a sign":   {head + "[[io.buildpacks.build.env]]\nname=\"A=B\"\nvalue=\"a\"\n", `"A=B"`},
		"buildpack by uri":       {head + "[[io.buildpacks.group]]\nuri=\"https://x/y.tgz\"\n", "https://x/y.tgz"},
		"inline script":          {head + "[[io.buildpacks.group]]\nid=\"me/x\"\n[io.buildpacks.group.script]\napi=\"0.10\"\ninline=\"id\"\n", "me/x"},
		"too large":              {strings.Repeat("#", maxSize+1), "no project descriptor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.content), "sub/project.toml")
			if err == nil || exitcode.Of(err) != exitcode.BadInput {
				t.Fatalf("error %v, code %d", err, exitcode.Of(err))
			}
			if m := err.Error(); !strings.HasPrefix(m, "sub/project.toml: ") || !strings.Contains(m, c.part) || strings.Contains(m, "\n") {
				t.Errorf("message %q, want one line that names the file and %q", m, c.part)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "[io.buildpacks]\ninclude=[\"a\"]\n[[io.buildpacks.build.env]]\nname=\"A\"\nvalue=\"b\"\n"))
	f.Add([]byte("[_]\nschema-version = \"0.3\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b, "p")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		for _, v := range p.Env {
			if CheckName(v.Name) != nil {
				t.Errorf("variable %q", v.Name)
			}
		}
	})
}
