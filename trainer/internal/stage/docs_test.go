package stage

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A document that names a test which is gone promises what nothing shows.
func TestDocsNameTestsThatExist(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	named := regexp.MustCompile("`([a-z]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) < 50 {
		t.Errorf("%d tests are named: has the form of the table changed?", len(named))
	}
	for _, n := range named {
		pkg, test := n[1], n[2]
		if _, ok := sources[pkg]; !ok {
			files, err := filepath.Glob(filepath.Join("..", pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(b)
			}
			sources[pkg] = all.String()
		}
		if !strings.Contains(sources[pkg], "func "+test+"(") {
			t.Errorf("docs/lifecycle.md names %s.%s, which does not exist", pkg, test)
		}
	}
}
