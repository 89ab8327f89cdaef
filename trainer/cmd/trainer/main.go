// Command trainer prepares data, trains GPT-2 models on CPUs, judges and serves
// them. See package cli.
package main

import (
	"os"

	"github.com/trainyard/trainyard/trainer/internal/cli"
)

// Stamped by -ldflags "-X main.version=... -X main.commit=...".
var version, commit string

func main() { os.Exit(cli.Main(os.Args[1:], cli.Build{Version: version, Commit: commit})) }
