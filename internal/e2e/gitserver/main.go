// Command gitserver is the git host of the end-to-end tests: it serves one repository,
// /repo.git, over https to one user and over ssh to one key. What it is told to be is
// in a folder, the mounted Secret:
//
//	repo.bundle             the repository, as git bundle makes it
//	tls.crt, tls.key        its certificate
//	username, password      of https
//	host-key                its key of ssh
//	authorized-key          the public key of who may read, as OpenSSH writes it
//
// Git itself answers, from PATH:
//
//	gitserver copy FILE          copies this program to where an image with git can run it
//	gitserver serve CONFIG DATA  serves on :8443 and :2222; DATA is an empty folder
package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gitserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "copy":
		return copySelf(args[1])
	case len(args) == 3 && args[0] == "serve":
		return serve(ctx, args[1], args[2])
	}
	return errors.New("say copy FILE, or serve CONFIG DATA")
}

func copySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func serve(ctx context.Context, config, data string) error {
	repo := filepath.Join(data, "repo.git")
	clone := exec.CommandContext(ctx, "git", "clone", "--quiet", "--mirror", filepath.Join(config, "repo.bundle"), repo)
	clone.Env = append(clone.Environ(), "HOME="+data)
	if out, err := clone.CombinedOutput(); err != nil {
		return fmt.Errorf("make the repository: %w: %s", err, out)
	}
	s := server{config: config, repo: repo}
	failed := make(chan error, 2)
	go func() { failed <- s.serveSSH(ctx, ":2222") }()
	web := &http.Server{Addr: ":8443", Handler: http.HandlerFunc(s.web), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		failed <- web.ListenAndServeTLS(filepath.Join(config, "tls.crt"), filepath.Join(config, "tls.key"))
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return web.Close()
	}
}

type server struct{ config, repo string }

// file reads one of the Secret's; without it nobody gets in.
func (s server) file(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.config, name))
}

// uploadPack lets git answer.
func (s server) uploadPack(ctx context.Context, in io.Reader, out io.Writer, flags ...string) error {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"upload-pack"}, flags...), s.repo)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	return cmd.Run()
}

func (s server) allowed(r *http.Request) bool {
	user, err1 := s.file("username")
	password, err2 := s.file("password")
	gotUser, gotPassword, _ := r.BasicAuth()
	return err1 == nil && err2 == nil && len(password) > 0 &&
		subtle.ConstantTimeCompare([]byte(gotUser), user)&subtle.ConstantTimeCompare([]byte(gotPassword), password) == 1
}

// web is git's protocol over http.
func (s server) web(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/repo.git/info/refs" && r.URL.Query().Get("service") == "git-upload-pack":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		answer := bytes.NewBufferString("001e# service=git-upload-pack\n0000")
		if err := s.uploadPack(r.Context(), nil, answer, "--stateless-rpc", "--advertise-refs"); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = answer.WriteTo(w)
	case r.Method == http.MethodPost && r.URL.Path == "/repo.git/git-upload-pack":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		if err := s.uploadPack(r.Context(), r.Body, w, "--stateless-rpc"); err != nil {
			fmt.Fprintln(os.Stderr, "gitserver: upload-pack:", err)
		}
	default:
		http.NotFound(w, r)
	}
}

func (s server) serveSSH(ctx context.Context, address string) error {
	config, err := s.sshConfig()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.handle(ctx, conn, config)
	}
}

func (s server) sshConfig() (*ssh.ServerConfig, error) {
	key, err := s.file("host-key")
	if err != nil {
		return nil, err
	}
	host, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("host-key: %w", err)
	}
	line, err := s.file("authorized-key")
	if err != nil {
		return nil, err
	}
	allowed, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil, fmt.Errorf("authorized-key: %w", err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || !bytes.Equal(key.Marshal(), allowed.Marshal()) {
			return nil, errors.New("who are you?")
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(host)
	return config, nil
}

func (s server) handle(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // a stranger
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go s.session(ctx, channel, requests)
	}
}

// session runs the one command that there is.
func (s server) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		var asked struct{ Command string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &asked) != nil {
			_ = r.Reply(r.Type == "env", nil)
			continue
		}
		_ = r.Reply(true, nil)
		status := struct{ Status uint32 }{1}
		if command, path, _ := strings.Cut(asked.Command, " "); command == "git-upload-pack" && (path == "'/repo.git'" || path == "'repo.git'") {
			if err := s.uploadPack(ctx, channel, channel); err == nil {
				status.Status = 0
			}
		} else {
			fmt.Fprintf(channel.Stderr(), "no such repository\n")
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}
