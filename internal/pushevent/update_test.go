package pushevent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushevent"
)

var one, two = strings.Repeat("1", 40), strings.Repeat("a", 40)

func TestAHooksLinesAreRead(t *testing.T) {
	got, err := pushevent.ReadUpdates(strings.NewReader(one + " " + two + " refs/heads/main\n" +
		none + " " + one + " refs/notes/commits\n" + // of these, forges tell nobody
		one + " " + none + " refs/heads/grüße/$(x)'\n" + none + " " + two + " refs/tags/v1"))
	want := []pushevent.Update{
		{Before: one, After: two, Ref: "refs/heads/main"}, {Before: one, After: none, Ref: "refs/heads/grüße/$(x)'"}, {Before: none, After: two, Ref: "refs/tags/v1"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if got, err := pushevent.ReadUpdates(strings.NewReader("")); len(got) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

func TestLinesThatNoHookGetsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"two fields":    one + " " + two,
		"a short id":    "1234 " + two + " refs/heads/main",
		"capitals":      strings.ToUpper(two) + " " + one + " refs/heads/main",
		"no ref":        one + " " + two + " main",
		"a space":       one + " " + two + " refs/heads/a b",
		"an empty line": one + " " + two + " refs/heads/main\n\n",
		"a long line":   one + " " + two + " refs/heads/" + strings.Repeat("x", 5000),
		"too many":      strings.Repeat(one+" "+two+" refs/heads/main\n", 10001),
		"a zero byte":   one + " " + two + " refs/heads/a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := pushevent.ReadUpdates(strings.NewReader(text)); exitcode.Of(err) != exitcode.BadInput || got != nil {
				t.Errorf("%v, error %v", got, err)
			}
		})
	}
}

func FuzzReadUpdates(f *testing.F) {
	f.Add(one + " " + two + " refs/heads/main\n")
	f.Add(none + " " + two + " refs/tags/v1")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := pushevent.ReadUpdates(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, u := range got {
			line := u.Before + " " + u.After + " " + u.Ref
			if !strings.Contains(text, line) || !strings.HasPrefix(u.Ref, "refs/") || strings.ContainsAny(u.Ref, " \n") {
				t.Errorf("%+v is not in %q", u, text)
			}
		}
	})
}
