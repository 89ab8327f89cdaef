package settings

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddLabels(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want map[string]string
	}{
		"none":          {"", map[string]string{}},
		"pairs":         {"a=b c.d/e=f", map[string]string{"a": "b", "c.d/e": "f"}},
		"equals sign":   {"a=b=c", map[string]string{"a": "b=c"}},
		"empty value":   {"a= b=''", map[string]string{"a": "", "b": ""}},
		"quoted values": {`a="b c" d='e  f'`, map[string]string{"a": "b c", "d": "e  f"}},
		"escaped quote": {`a="b \"c\" \'d\'"`, map[string]string{"a": `b "c" 'd'`}},
		"lines":         {"a=\"b\nc\"", map[string]string{"a": "b\nc"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			if err := addLabels(got, c.line); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestAddLabelsRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"no value": "a", "no key": "=b", "two spaces": "a=b  c=d", "quoted key": `"a b"=c`, "open quote": `a="b`,
		"other quote within": `a="b'c"`, "text after the quote": `a="b"c`, "quote in the middle": `a=b"c"`, "twice": "a=1 a=2",
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			if err := addLabels(got, line); err == nil {
				t.Errorf("%q accepted: %q", line, got)
			}
		})
	}
}

func FuzzAddLabels(f *testing.F) {
	f.Add(`a="b \"c\"" d=e`)
	f.Fuzz(func(t *testing.T, line string) {
		got := map[string]string{}
		if addLabels(got, line) != nil {
			return
		}
		// Written again with quotes, they are the same labels.
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(got)) {
			if strings.Contains(got[k], `\`) {
				return // a value may hold any other use of a backslash as it is
			}
			pairs = append(pairs, k+`="`+strings.NewReplacer(`"`, `\"`, `'`, `\'`).Replace(got[k])+`"`)
		}
		again := map[string]string{}
		if err := addLabels(again, strings.Join(pairs, " ")); err != nil || !maps.Equal(got, again) {
			t.Errorf("%q: %q, again %q: %v", line, got, again, err)
		}
	})
}
