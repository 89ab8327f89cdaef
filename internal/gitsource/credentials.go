package gitsource

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Credentials are the directories that Secrets are mounted at, in the forms that
// the Tekton catalog's git-clone takes. An empty one is not there.
type Credentials struct {
	// SSHDirectory holds known_hosts and one private key: id_ed25519, id_ecdsa,
	// id_rsa or ssh-privatekey, without a passphrase. A config file in it is not
	// read.
	SSHDirectory string
	// BasicAuth holds .git-credentials with lines https://user:token@host, or the
	// files username and password of a kubernetes.io/basic-auth Secret.
	BasicAuth string
}

const (
	maxSecret   = 1 << 20
	dialTimeout = 30 * time.Second
)

// auth returns what an address is asked with, nil for nothing.
func (c Credentials) auth(a Address) (transport.AuthMethod, error) {
	switch a.scheme {
	case schemeSSH:
		return c.sshAuth(a)
	case schemeHTTP, schemeHTTPS:
		return c.basicAuth(a)
	}
	return nil, nil
}

// keyAuth shows a private key to a server that known_hosts knows.
type keyAuth struct {
	user       string
	signer     ssh.Signer
	callback   ssh.HostKeyCallback
	algorithms []string
}

var _ gitssh.AuthMethod = (*keyAuth)(nil)

func (k *keyAuth) Name() string   { return gitssh.PublicKeysName }
func (k *keyAuth) String() string { return "private key for " + k.user }

// ClientConfig is how to connect.
func (k *keyAuth) ClientConfig() (*ssh.ClientConfig, error) {
	return &ssh.ClientConfig{
		User: k.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(k.signer)},
		HostKeyCallback: k.callback, HostKeyAlgorithms: k.algorithms, Timeout: dialTimeout,
	}, nil
}

func (c Credentials) sshAuth(a Address) (transport.AuthMethod, error) {
	dir := c.SSHDirectory
	if dir == "" {
		return nil, exitcode.Errorf(exitcode.Usage, "%s needs a private key and known_hosts: bind a Secret with both to the workspace ssh-directory", a)
	}
	hosts := filepath.Join(dir, "known_hosts")
	db, err := gitssh.NewKnownHostsDb(hosts)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "known_hosts of the ssh-directory: without it anybody could answer for %s; ssh-keyscan %s, compare what it prints with what the host publishes, and put it in: %w", a.host, hostOnly(a.host), err)
	}
	names := []string{"id_ed25519", "id_ecdsa", "id_rsa", "ssh-privatekey"}
	for _, name := range names {
		b, err := readSecret(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		signer, err := ssh.ParsePrivateKey(b)
		var passphrase *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &passphrase):
			return nil, exitcode.Errorf(exitcode.BadInput, "%s of the ssh-directory has a passphrase, which nobody is there to type: use a deploy key without one", name)
		case err != nil:
			return nil, exitcode.Errorf(exitcode.BadInput, "%s of the ssh-directory is no private key", name)
		}
		user := a.user
		if user == "" {
			user = "git"
		}
		address := a.host
		if !strings.Contains(strings.TrimPrefix(address, "["), ":") || strings.HasSuffix(address, "]") {
			address += ":22"
		}
		return &keyAuth{user: user, signer: signer, callback: db.HostKeyCallback(), algorithms: db.HostKeyAlgorithms(address)}, nil
	}
	return nil, exitcode.Errorf(exitcode.BadInput, "the ssh-directory has none of %s", strings.Join(names, ", "))
}

func hostOnly(host string) string {
	u := url.URL{Host: host}
	return u.Hostname()
}

func (c Credentials) basicAuth(a Address) (transport.AuthMethod, error) {
	if c.BasicAuth == "" {
		return nil, nil
	}
	lines, err := readSecret(filepath.Join(c.BasicAuth, ".git-credentials"))
	if err == nil {
		return credentialFor(lines, a)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	user, err := readSecret(filepath.Join(c.BasicAuth, "username"))
	if err == nil {
		var password []byte
		if password, err = readSecret(filepath.Join(c.BasicAuth, "password")); err == nil {
			if a.scheme != schemeHTTPS {
				return nil, exitcode.Errorf(exitcode.Usage, "%s: username and password would travel in plain text: use https", a)
			}
			return &githttp.BasicAuth{Username: trimLine(user), Password: trimLine(password)}, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exitcode.Errorf(exitcode.BadInput, "the basic-auth workspace has neither .git-credentials nor username and password")
	}
	return nil, err
}

// credentialFor finds the line of .git-credentials for an address, as git's own
// store does: scheme and host must be equal. Nothing is sent to other hosts. A nil
// result means that there is none.
func credentialFor(lines []byte, a Address) (transport.AuthMethod, error) {
	s := bufio.NewScanner(bytes.NewReader(lines))
	s.Buffer(nil, maxSecret)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		u, err := url.Parse(line)
		if err != nil || u.Host == "" || u.User == nil {
			// Not the line itself: it is a secret.
			return nil, exitcode.Errorf(exitcode.BadInput, "line %d of .git-credentials is not https://user:token@host", n)
		}
		if u.Scheme == a.scheme && u.Host == a.host {
			password, _ := u.User.Password()
			return &githttp.BasicAuth{Username: u.User.Username(), Password: password}, nil
		}
	}
	if err := s.Err(); err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, ".git-credentials: %w", err)
	}
	return nil, nil
}

func trimLine(b []byte) string { return strings.TrimRight(string(b), "\r\n") }

func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exitcode.New(exitcode.IO, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return nil, exitcode.New(exitcode.IO, err)
	case len(b) > maxSecret:
		return nil, exitcode.Errorf(exitcode.BadInput, "%s has more than %d bytes", filepath.Base(path), maxSecret)
	}
	return b, nil
}
