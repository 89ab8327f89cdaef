package toolimage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Source says what is compiled.
type Source struct {
	Go       string      // the go command, "go" when empty
	Module   string      // directory of the module
	Package  string      // "./cmd/yard" when empty
	Platform v1.Platform // what to build for
	Version  string      // stamped as main.version, may be empty
	Commit   string      // stamped as main.commit, may be empty
	Output   string      // the program
}

// Compile builds a static program in which no path of this machine remains: the
// same source, Go version and platform give the same bytes.
func Compile(ctx context.Context, s Source) error {
	output, err := filepath.Abs(s.Output)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	ldflags := []string{"-s", "-w", "-buildid="}
	for name, value := range map[string]string{"main.version": s.Version, "main.commit": s.Commit} {
		if strings.ContainsAny(value, " '\"\n") {
			return fmt.Errorf("compile: %s %q: spaces and quotes cannot be stamped into a program", name, value)
		}
	}
	// In a fixed order, since the flags are part of the build information.
	if s.Version != "" {
		ldflags = append(ldflags, "-X", "main.version="+s.Version)
	}
	if s.Commit != "" {
		ldflags = append(ldflags, "-X", "main.commit="+s.Commit)
	}
	cmd := exec.CommandContext(ctx, or(s.Go, "go"), "build", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join(ldflags, " "), "-o", output, or(s.Package, "./cmd/yard"))
	cmd.Dir = s.Module
	// Settings of this machine that would change the program are put to their
	// defaults. (An empty GOFLAGS would give way to that of `go env -w`.)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOOS="+s.Platform.OS, "GOARCH="+s.Platform.Architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("compile for %s: %w", s.Platform.String(), context.Cause(ctx))
		}
		return fmt.Errorf("compile for %s: %w: %s", s.Platform.String(), err, firstLines(stderr.String()))
	}
	return nil
}

// trainerModule is where the trainer is, in the module of yard.
const trainerModule = "trainer"

// Make compiles a program, and with yard the trainer, and assembles their image. The
// Output of the source is not used: the programs exist in the image only.
func Make(ctx context.Context, s Source, certificates []byte, created time.Time) (v1.Image, error) {
	scratch, err := os.MkdirTemp("", "yard-")
	if err != nil {
		return nil, fmt.Errorf("tool image: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	s.Output = filepath.Join(scratch, "yard")
	if err := Compile(ctx, s); err != nil {
		return nil, err
	}
	trainer := ""
	if s.Package == "" { // yard
		t := s
		t.Module, t.Package, t.Output = filepath.Join(s.Module, trainerModule), "./cmd/trainer", filepath.Join(scratch, "trainer")
		if err := Compile(ctx, t); err != nil {
			return nil, err
		}
		trainer = t.Output
	}
	return New(Config{
		Program: s.Output, Trainer: trainer, Platform: s.Platform, Certificates: certificates,
		Version: s.Version, Revision: s.Commit, Created: created,
	})
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// firstLines keeps what names the cause of a failed build, in one line.
func firstLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > 3 {
		lines = append(lines[:3], "…")
	}
	return strings.Join(lines, "; ")
}
