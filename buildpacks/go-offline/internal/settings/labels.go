package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Label is a label of the image.
type Label struct{ Key, Value string }

// ociLabels are the labels that have a variable of their own.
func ociLabels() []string {
	return []string{"authors", "created", "description", "documentation", "licenses", "ref.name", "revision", "source", "title", "url", "vendor", "version"}
}

// labels reads the labels in the order of their keys.
func labels(e Env) ([]Label, error) {
	all := map[string]string{}
	for _, l := range ociLabels() {
		name := "BP_OCI_" + strings.ToUpper(strings.ReplaceAll(l, ".", "_"))
		if v, ok := e.Lookup(name); ok {
			all["org.opencontainers.image."+l] = v
		}
	}
	if err := addLabels(all, e.get("BP_IMAGE_LABELS")); err != nil {
		return nil, fmt.Errorf("BP_IMAGE_LABELS: %w", err)
	}
	out := make([]Label, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Label{k, all[k]})
	}
	return out, nil
}

// addLabels reads pairs such as a=b c="d e", one space between them. A quote
// within quotes is written \".
func addLabels(all map[string]string, line string) error {
	for rest := line; rest != ""; {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \t\r\n\"'\\") {
			return fmt.Errorf("%q: want KEY=VALUE with one space between pairs", rest)
		}
		if _, twice := all[key]; twice {
			return fmt.Errorf("label %s is set twice", key)
		}
		var err error
		if all[key], rest, err = labelValue(after); err != nil {
			return fmt.Errorf("label %s: %w", key, err)
		}
	}
	return nil
}

func labelValue(s string) (value, rest string, err error) {
	if s == "" || (s[0] != '"' && s[0] != '\'') {
		value, rest, _ = strings.Cut(s, " ")
		if strings.ContainsAny(value, "\"'\\\t\r\n") {
			return "", "", errors.New("put the whole value in quotes")
		}
		return value, rest, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\''):
			i++
			b.WriteByte(s[i])
		case s[i] == s[0]:
			rest, ok := strings.CutPrefix(s[i+1:], " ")
			if !ok && rest != "" {
				return "", "", fmt.Errorf("%q after the closing quote", rest)
			}
			return b.String(), rest, nil
		case s[i] == '"' || s[i] == '\'':
			return "", "", fmt.Errorf("write a %c within quotes as \\%c", s[i], s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", fmt.Errorf("the quote %c is not closed", s[0])
}
