package commitstatus

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Link makes the address that a status links to, from a template such as
// https://reports.example.com/{bucket}/{key}.
type Link struct{ template string }

// linkValues are what templates can name. Empty ones are not known (yet).
type linkValues struct{ namespace, run, commit, report string }

var (
	placeholder = regexp.MustCompile(`\{[^{}]*\}`)
	linkNames   = []string{"{namespace}", "{run}", "{commit}", "{report}", "{bucket}", "{key}"}
)

// ParseLink checks a template. It begins with https:// or http:// and a host, or
// with {report}, for reports that have such an address themselves.
func ParseLink(template string) (Link, error) {
	bad := func(why string) (Link, error) {
		return Link{}, exitcode.Errorf(exitcode.Usage, "link %q: %s", template, why)
	}
	for _, name := range placeholder.FindAllString(template, -1) {
		if !slices.Contains(linkNames, name) {
			return bad("there is no " + name + ": use " + strings.Join(linkNames, " "))
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(template, ""), "{}") {
		return bad("a brace has no other")
	}
	if strings.HasPrefix(template, "{report}") {
		return Link{template}, nil
	}
	// A placeholder in the place of the host would let a run choose where people go.
	u, err := url.Parse(placeholder.ReplaceAllString(template, "x"))
	if err != nil {
		return bad("it is no address")
	}
	host := strings.TrimPrefix(strings.TrimPrefix(template, "https://"), "http://")
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host = host[:end]
	}
	switch {
	case !isWeb(u):
		return bad("want https:// or http:// and a host, without user and password")
	case strings.ContainsAny(host, "{}"):
		return bad("the host has to be written out")
	}
	return Link{template}, nil
}

// address fills the template in. It is false where a value is not known, or where
// what comes out is nothing that a browser should follow.
func (l Link) address(v linkValues) (string, bool) {
	bucket, key := splitStore(v.report)
	known := map[string]string{
		"{namespace}": escape(v.namespace, false),
		"{run}":       escape(v.run, false),
		"{commit}":    escape(v.commit, false),
		"{report}":    escape(v.report, false),
		"{bucket}":    escape(bucket, false),
		"{key}":       escape(key, true),
	}
	rest, out := l.template, ""
	if after, ok := strings.CutPrefix(rest, "{report}"); ok {
		rest, out = after, v.report
		if v.report == "" {
			return "", false
		}
	}
	all := true
	out += placeholder.ReplaceAllStringFunc(rest, func(name string) string {
		if known[name] == "" {
			all = false
		}
		return known[name]
	})
	if !all {
		return "", false
	}
	u, err := url.Parse(out)
	if err != nil || !isWeb(u) || oneLine(out) != out || strings.ContainsRune(out, ' ') {
		return "", false
	}
	return out, true
}

func isWeb(u *url.URL) bool {
	return (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

// splitStore takes an address in a store apart: s3://bucket/key.
func splitStore(address string) (bucket, key string) {
	rest, ok := strings.CutPrefix(address, "s3://")
	if !ok {
		return "", ""
	}
	bucket, key, _ = strings.Cut(rest, "/")
	// A path that climbs would leave the folder that the template names.
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." {
			return "", ""
		}
	}
	if bucket == "" || bucket == "." || bucket == ".." {
		return "", ""
	}
	return bucket, key
}

// escape writes a value so that it means the same in a path, a query and a fragment.
func escape(value string, slashes bool) string {
	out := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	if slashes {
		out = strings.ReplaceAll(out, "%2F", "/")
	}
	return out
}
