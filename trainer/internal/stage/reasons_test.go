package stage

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGlanceFitsAndSaysWhatIsMissing(t *testing.T) {
	long := strings.Repeat("ä", 100)
	for name, c := range map[string]struct {
		in    []string
		limit int
		want  string
	}{
		"none":                     {nil, 20, ""},
		"one":                      {[]string{"too high"}, 20, "too high"},
		"two":                      {[]string{"too high", "too low"}, 20, "too high; too low"},
		"line breaks":              {[]string{"too\n\thigh"}, 20, "too high"},
		"the second does not fit":  {[]string{"too high", strings.Repeat("x", 20), "z"}, 24, "too high; and 2 more"},
		"exactly":                  {[]string{"1234567890", "12345678"}, 20, "1234567890; 12345678"},
		"one byte too many":        {[]string{"1234567890", "123456789"}, 20, "12345…; and 1 more"},
		"the first does not fit":   {[]string{long}, 20, strings.Repeat("ä", 8) + "…"},
		"nor does it with another": {[]string{long, "x"}, 30, strings.Repeat("ä", 7) + "…; and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			got := glance(c.in, c.limit)
			if len(got) > c.limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\n") {
				t.Errorf("%q has %d bytes of %d", got, len(got), c.limit)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
