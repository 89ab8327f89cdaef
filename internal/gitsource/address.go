package gitsource

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Schemes of an address.
const (
	schemeHTTPS = "https"
	schemeHTTP  = "http"
	schemeSSH   = "ssh"
	schemeGit   = "git"
	schemeFile  = "file"
)

const maxAddress = 2048

// Address is where a repository is, checked.
type Address struct {
	scheme string
	user   string // of ssh
	host   string // with a port, if one is given
	path   string
	// relative is user@host:path, where the path starts from wherever the server puts
	// that user: with a plain sshd another repository than that of ssh://user@host/path.
	relative bool
}

// remote is the address as git is given it.
func (a Address) remote() string {
	if a.relative {
		return a.user + "@" + a.host + ":" + strings.TrimPrefix(a.path, "/")
	}
	return a.String()
}

// String is the address as an URL, without secrets: it never has any.
func (a Address) String() string {
	u := url.URL{Scheme: a.scheme, Host: a.host, Path: a.path}
	if a.user != "" {
		u.User = url.User(a.user)
	}
	return u.String()
}

var (
	scpLike  = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):([^/:].*)$`)
	portLike = regexp.MustCompile(`^[0-9]{1,5}:`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
)

// ParseAddress reads https://, http://, ssh:// and git:// addresses and
// user@host:path. Everything else is refused: helpers such as ext:: run programs, and
// file:// reads what the pod can read, which the caller may allow.
func ParseAddress(s string, allowFile bool) (Address, error) {
	fail := func(format string, args ...any) (Address, error) {
		return Address{}, exitcode.Errorf(exitcode.BadInput, "repository address %.200q: "+format, append([]any{withoutSecrets(s)}, args...)...)
	}
	if why := notPlain(s); why != "" {
		return fail("%s", why)
	}
	relative := false
	if m := scpLike.FindStringSubmatch(s); m != nil && !strings.Contains(s, "::") {
		if portLike.MatchString(m[3]) {
			return fail("a port belongs into ssh://%s@%s:PORT/path", m[1], m[2])
		}
		relative = true
		s = schemeSSH + "://" + m[1] + "@" + m[2] + "/" + strings.ReplaceAll(m[3], "%", "%25")
	}
	u, err := url.Parse(s)
	if err != nil {
		return fail("it is no URL: use https://host/path, ssh://user@host/path or user@host:path")
	}
	a := Address{scheme: u.Scheme, host: u.Host, path: u.Path, relative: relative}
	switch {
	case u.Scheme == schemeFile && !allowFile:
		return fail("file:// is not allowed here")
	case !slices.Contains([]string{schemeHTTPS, schemeHTTP, schemeSSH, schemeGit, schemeFile}, u.Scheme):
		return fail("scheme %q is not allowed: use https://host/path, ssh://user@host/path or user@host:path", u.Scheme)
	case u.Opaque != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fail("it has a query, a fragment or no // after its scheme")
	case u.Path == "" || u.Path == "/":
		return fail("it names no repository")
	case strings.ContainsFunc(u.Path, leavesQuotes):
		return fail("its path has a character that is not allowed, written as %%XX")
	case strings.HasPrefix(strings.TrimLeft(u.Path, "/"), "-"):
		return fail("its path looks like a flag")
	}
	return a.withHost(u, fail)
}

// withoutSecrets is an address as messages may show it: they are kept in logs. Of what
// stands before an @ only the plain user of an ssh address is left. A password may have
// any character in it, so that it is the last @ which counts.
func withoutSecrets(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	scheme, user := "", s[:at]
	if i := strings.Index(user, "://"); i >= 0 {
		scheme, user = user[:i+len("://")], user[i+len("://"):]
	}
	if userName.MatchString(user) && (scheme == "" || scheme == schemeSSH+"://") {
		return s
	}
	return scheme + "***" + s[at:]
}

// notPlain says what is wrong with the characters of an address.
func notPlain(s string) string {
	switch {
	case s == "":
		return "it is empty"
	case len(s) > maxAddress:
		return fmt.Sprintf("it has %d bytes, more than %d", len(s), maxAddress)
	case s[0] == '-':
		return "it looks like a flag"
	}
	for _, r := range s {
		if r == ' ' || leavesQuotes(r) {
			return fmt.Sprintf("it has the character %q", r)
		}
	}
	return ""
}

// leavesQuotes finds what may not be in a path: ssh servers get it in quotes.
func leavesQuotes(r rune) bool {
	return r < ' ' || r == 0x7f || r == '\'' || r == '\\' || r == 0xfffd
}

// withHost checks host and user.
func (a Address) withHost(u *url.URL, fail func(string, ...any) (Address, error)) (Address, error) {
	if a.scheme == schemeFile {
		if u.Host != "" || u.User != nil {
			return fail("file:// takes no host")
		}
		return a, nil
	}
	name := u.Hostname()
	if net.ParseIP(name) == nil && !hostName.MatchString(name) {
		return fail("host %q is none", name)
	}
	if u.User == nil {
		return a, nil
	}
	if _, has := u.User.Password(); has || a.scheme != schemeSSH {
		return fail("it has credentials in it, which logs and records would show: put them into a Secret (basic-auth)")
	}
	if a.user = u.User.Username(); !userName.MatchString(a.user) {
		return fail("user %q is none", a.user)
	}
	return a, nil
}
