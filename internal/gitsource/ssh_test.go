package gitsource

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// sshServer runs git-upload-pack for one key, as a git host does.
type sshServer struct {
	address string // host:port
	key     ssh.PublicKey

	mu       sync.Mutex
	commands []string
	users    []string
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func serveSSH(t *testing.T, allowed ssh.PublicKey) *sshServer {
	t.Helper()
	host, _ := newKey(t)
	s := &sshServer{key: host.PublicKey()}
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.users = append(s.users, c.User())
		if string(key.Marshal()) != string(allowed.Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s.address = l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.handle(conn, config)
		}
	}()
	return s
}

func (s *sshServer) handle(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			if r.Type != "exec" {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			command := string(r.Payload[4:])
			s.mu.Lock()
			s.commands = append(s.commands, command)
			s.mu.Unlock()
			go func() {
				cmd := exec.Command("/bin/sh", "-c", command) // as an ssh server does
				cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
				status := []byte{0, 0, 0, 0}
				if cmd.Run() != nil {
					status[3] = 1
				}
				_, _ = channel.SendRequest("exit-status", false, status)
				_ = channel.Close()
			}()
		}
	}
}

// secret writes a Secret's files as a volume shows them.
func secret(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What git itself asks an ssh server for is what ours has to ask for: a plain sshd takes
// a path without a slash from the user's home on.
func TestPathOfAnSSHAddressIsThatOfGit(t *testing.T) {
	for _, address := range []string{
		"git@example.com:team/llm.git", "git@example.com:~/llm.git", "ssh://git@example.com/team/llm.git",
		"ssh://git@example.com:2222/team/llm.git", "ssh://example.com/llm",
	} {
		dir := t.TempDir()
		said := filepath.Join(dir, "said")
		program := filepath.Join(dir, "ssh")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nfor last; do :; done\nprintf %s \"$last\" >"+said+"\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "ls-remote", address)
		cmd.Env = append(cmd.Environ(), "GIT_SSH_COMMAND="+program, "GIT_SSH_VARIANT=ssh", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		_ = cmd.Run()
		want, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ParseAddress(address, false)
		if err != nil {
			t.Fatal(err)
		}
		endpoint, err := transport.NewEndpoint(a.remote())
		if err != nil {
			t.Fatal(err)
		}
		if got := "git-upload-pack '" + endpoint.Path + "'"; got != string(want) || endpoint.Host != "example.com" {
			t.Errorf("%s: %s at %s, git says %s", address, got, endpoint.Host, want)
		}
	}
}

func TestFetchOverSSH(t *testing.T) {
	o := newOrigin(t)
	signer, private := newKey(t)
	_, stranger := newKey(t)
	s := serveSSH(t, signer.PublicKey())
	other, _ := newKey(t)
	hosts := knownhosts.Line([]string{s.address}, s.key) + "\n"
	encrypted := func() string {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("pw"))
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(block))
	}
	for name, c := range map[string]struct {
		files map[string]string // nil: no workspace
		code  int
		want  string
	}{
		"key and known host":     {map[string]string{"id_ed25519": string(private), "known_hosts": hosts}, exitcode.OK, ""},
		"key of a ssh-auth":      {map[string]string{"ssh-privatekey": string(private), "known_hosts": hosts}, exitcode.OK, ""},
		"key of a stranger":      {map[string]string{"id_rsa": string(stranger), "known_hosts": hosts}, exitcode.IO, "ssh-directory"},
		"no known_hosts":         {map[string]string{"id_ed25519": string(private)}, exitcode.BadInput, "ssh-keyscan 127.0.0.1"},
		"host unknown":           {map[string]string{"id_ed25519": string(private), "known_hosts": knownhosts.Line([]string{"example.com"}, s.key) + "\n"}, exitcode.BadInput, "does not name " + s.address},
		"host with another key":  {map[string]string{"id_ed25519": string(private), "known_hosts": knownhosts.Line([]string{s.address}, other.PublicKey()) + "\n"}, exitcode.Integrity, "another key"},
		"no key":                 {map[string]string{"known_hosts": hosts}, exitcode.BadInput, "id_ed25519, id_ecdsa, id_rsa, ssh-privatekey"},
		"a key with passphrase":  {map[string]string{"id_ed25519": encrypted(), "known_hosts": hosts}, exitcode.BadInput, "passphrase"},
		"something that is none": {map[string]string{"id_ed25519": "hello", "known_hosts": hosts}, exitcode.BadInput, "is no private key"},
		"known_hosts is garbage": {map[string]string{"id_ed25519": string(private), "known_hosts": "hello\n"}, exitcode.BadInput, "known_hosts"},
		"no workspace":           {nil, exitcode.Usage, "ssh-directory"},
	} {
		t.Run(name, func(t *testing.T) {
			var cred Credentials
			if c.files != nil {
				cred.SSHDirectory = secret(t, c.files)
			}
			r, err := Fetch(t.Context(), Options{
				URL: "ssh://robot@" + s.address + o.dir + "/.git", Revision: "main", Workspace: t.TempDir(), Path: "source", Depth: 1, Credentials: cred,
			})
			if exitcode.Of(err) != c.code {
				t.Fatalf("got %v, want exit code %d", err, c.code)
			}
			switch {
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Errorf("got %v, want it to say %q", err, c.want)
			case err == nil && (r.Commit != o.second || runGit(t, r.Path, "status", "--porcelain") != ""):
				t.Errorf("got %+v, want commit %s and a clean tree", r, o.second)
			}
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if u != "robot" {
			t.Errorf("user %q was sent, want robot", u)
		}
	}
	for _, c := range s.commands {
		if c != "git-upload-pack '"+o.dir+"/.git'" {
			t.Errorf("the server was told to run %q", c)
		}
	}
}
