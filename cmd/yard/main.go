// Command yard builds images with Cloud Native Buildpacks, pins what was built,
// and prepares clusters for the project's pipelines. See package cli.
package main

import (
	"os"

	"github.com/trainyard/trainyard/internal/cli"
)

// Stamped by -ldflags "-X main.version=... -X main.commit=...".
var version, commit string

func main() { os.Exit(cli.Main(os.Args[1:], cli.Build{Version: version, Commit: commit})) }
