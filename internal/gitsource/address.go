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
}

// String is the address without secrets: it never has any.
func (a Address) String() string {
	u := url.URL{Scheme: a.scheme, Host: a.host, Path: a.path}
	if a.user != "" {
		u.User = url.User(a.user)
	}
	return u.String()
}

var (
	scpLike  = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):([^/:].*)$`)
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
	if m := scpLike.FindStringSubmatch(s); m != nil && !strings.Contains(s, "::") {
		s = schemeSSH + "://" + m[1] + "@" + m[2] + "/" + m[3]
	}
	u, err := url.Parse(s)
	if err != nil {
		return fail("it is no URL: use https://host/path, ssh://user@host/path or user@host:path")
	}
	a := Address{scheme: u.Scheme, host: u.Host, path: u.Path}
	switch {
	case u.Scheme == schemeFile && !allowFile:
		return fail("file:// is not allowed here")
	case !slices.Contains([]string{schemeHTTPS, schemeHTTP, schemeSSH, schemeGit, schemeFile}, u.Scheme):
		return fail("scheme %q is not allowed: use https://host/path, ssh://user@host/path or user@host:path", u.Scheme)
	case u.Opaque != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fail("it has a query, a fragment or no // after its scheme")
	case u.Path == "" || u.Path == "/":
		return fail("it names no repository")
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
		// The quote and the backslash would leave the quotes in which ssh
		// servers get the path.
		if r <= ' ' || r == 0x7f || r == '\'' || r == '\\' || r == 0xfffd {
			return fmt.Sprintf("it has the character %q", r)
		}
	}
	return ""
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
