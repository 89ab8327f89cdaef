package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// getenv knows what the examples below use.
func getenv(name string) string {
	return map[string]string{"VERSION": "v1.2", "TWO": "x y", "QUOTE": `a"b`}[name]
}

// The values are what github.com/mattn/go-shellwords v1.0.14, which go-build uses
// with ParseEnv, returns for the same line; random lines were compared too.
func TestSplitWords(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"nothing":                         {" \t\n", nil},
		"flags":                           {"-buildmode=default -trimpath\n-buildvcs=false", []string{"-buildmode=default", "-trimpath", "-buildvcs=false"}},
		"double quotes within a word":     {`-ldflags="-s -w" -a`, []string{"-ldflags=-s -w", "-a"}},
		"single quotes":                   {`-ldflags='-s -w'`, []string{"-ldflags=-s -w"}},
		"other quote within quotes":       {`"it's" 'a"b'`, []string{"it's", `a"b`}},
		"empty word":                      {`a "" ''`, []string{"a", "", ""}},
		"escaped quote":                   {`"-X a=\"b c\""`, []string{`-X a="b c"`}},
		"escaped dollar":                  {`"\$HOME"`, []string{"$HOME"}},
		"variable":                        {`-X=$VERSION ${VERSION}x`, []string{"-X=v1.2", "v1.2x"}},
		"variable in single quotes too":   {`'$VERSION'`, []string{"v1.2"}},
		"variable with a space, quoted":   {`"$TWO"`, []string{"x y"}},
		"variable with a space, unquoted": {`a$TWO`, []string{"ax", "y"}},
		"variable that is not set":        {`a $UNSET b${UNSET}c`, []string{"a", "bc"}},
		"dollar for itself":               {`a$ $- "$"`, []string{"a$", "$-", "$"}},
		"operators in quotes":             {`"a;b|c" '(x)'`, []string{"a;b|c", "(x)"}},
		"hash is no comment":              {`a #b`, []string{"a", "#b"}},
		"equals sign":                     {`-X=a=b=c`, []string{"-X=a=b=c"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := splitWords(c.line, getenv)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%q: -want +got\n%s", c.line, d)
			}
		})
	}
}

// go-shellwords accepts most of these, and means something else than a shell.
func TestSplitWordsRefusesWhatIsReadInTwoWays(t *testing.T) {
	for name, c := range map[string]struct{ line, says string }{
		"open quote":                        {`"a`, `the quote " is not closed`},
		"cut at a semicolon":                {"-a;-b", "outside of quotes"},
		"cut at a pipe":                     {"-a|b", "outside of quotes"},
		"command":                           {"$(date)", "outside of quotes"},
		"backticks":                         {"`date`", "outside of quotes"},
		"backslash is dropped":              {`'a\b'`, "backslash"},
		"backslash for a space":             {`a\ b`, "backslash"},
		"backslash at the end":              {`"a\`, "backslash"},
		"split again after a quote":         {`"a b"c`, "end the word with a closing quote"},
		"quote within a variable":           {`x$QUOTE`, "end the word with a closing quote"},
		"name that goes on after a quote":   {`"$VERSION"x`, "quote within the name"},
		"brace that is not closed":          {`"${VERSION"`, "want ${NAME}"},
		"expression in braces":              {`"${VERSION:-x}"`, "want ${NAME}"},
		"empty braces":                      {`${}`, "want ${NAME}"},
		"escaped dollar right after a name": {`"$VERSION\$x"`, `before \$`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := splitWords(c.line, getenv)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q: got %q, error %v, want %q", c.line, got, err, c.says)
			}
		})
	}
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`-ldflags="-X a=$VERSION" 'c d'`)
	f.Add(`"\$" ${TWO} "$"`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := splitWords(line, getenv)
		if err != nil {
			return
		}
		// Words quoted again are the same words.
		var quoted []string
		for _, w := range words {
			if strings.ContainsAny(w, `\`) || strings.Contains(w, "$") || !isPlain(w) {
				return
			}
			quoted = append(quoted, `"`+strings.ReplaceAll(w, `"`, `\"`)+`"`)
		}
		again, err := splitWords(strings.Join(quoted, " "), getenv)
		if err != nil || !cmp.Equal(words, again) {
			t.Errorf("%q: %q, quoted again %q: %v", line, words, again, err)
		}
	})
}

func isPlain(s string) bool { return strings.ToValidUTF8(s, "") == s }
