package cli

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/generate"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/serve"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// serveFlags are the flags of serve that are not options of its server.
type serveFlags struct {
	machineFlags
	runDir, model, addr string
	concurrency         int
}

func newServe(a *App) *cobra.Command {
	o := serve.Options{MaxBody: 1 << 20, MaxTokens: 1024, RequestTimeout: time.Minute, DrainTimeout: 20 * time.Second}
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer OpenAI's completions API from a model",
		Long: `Answer POST /v1/completions (also as a stream), GET /v1/models, /healthz, /readyz
and /metrics. There is no authentication and no TLS: put a gateway in front.
SIGTERM lets running answers end.`,
		Example: `  trainer serve --run-dir runs/qa
  trainer serve --model ./gpt2 --addr 127.0.0.1:8080 --concurrency 4
  curl -s localhost:8080/v1/completions -d '{"prompt":"How far is the sun? |","temperature":0}'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := f.settle(a, cmd)
			if err != nil {
				return err
			}
			if err := f.load(a, &o); err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			if err := f.announce(a, source); err != nil {
				return err
			}
			o.Now, o.Seed, o.NewID, o.Log = a.Now, randomSeed, randomID, a.logger()
			s, err := serve.New(o)
			if err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", f.addr)
			if err != nil {
				return exitcode.Errorf(exitcode.IO, "serve: %w", err)
			}
			o.Log.Info("serving", "address", l.Addr().String(), "model", o.Model, "digest", o.Digest, "concurrency", len(o.Engines))
			return s.Serve(cmd.Context(), l)
		},
	}
	f.machineFlags.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.runDir, "run-dir", "", "run directory whose best model is served")
	fl.StringVar(&f.model, "model", "", "directory of the model; empty is RUN/best")
	fl.StringVar(&o.Model, "model-id", "trainyard", "name by which clients ask for the model")
	fl.StringVar(&f.addr, "addr", ":8080", "address to listen on")
	fl.IntVar(&f.concurrency, "concurrency", 0, "answers at once, each with a cache of its own; 0 is one a thread. More get 429")
	fl.Int64Var(&o.MaxBody, "max-body", o.MaxBody, "bytes of a request")
	fl.IntVar(&o.MaxTokens, "max-tokens", o.MaxTokens, "most tokens that a request may ask for")
	fl.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "for one answer")
	fl.DurationVar(&o.DrainTimeout, "drain-timeout", o.DrainTimeout, "for running answers at shutdown")
	return cmd
}

// load reads the model and makes an engine for each answer at once.
func (f *serveFlags) load(a *App, o *serve.Options) error {
	dir := f.model
	set, err := kernel.Choose(a.Getenv(kernel.EnvISA))
	switch {
	case err != nil:
		return err
	case f.concurrency < 0 || f.concurrency > 1024:
		return exitcode.Errorf(exitcode.Usage, "concurrency is %d, want 0 to 1024", f.concurrency)
	case dir == "" && f.runDir == "":
		return exitcode.Errorf(exitcode.Usage, "no model: set run-dir or model")
	case dir == "":
		dir = filepath.Join(f.runDir, train.BestDir)
	}
	m, err := hf.Load(dir)
	if err != nil {
		return err
	}
	tok, err := bpe.Load(dir)
	if err != nil {
		return err
	}
	if tok.VocabSize() > m.Config().VocabSize {
		return exitcode.Errorf(exitcode.BadInput, "model %s knows %d tokens, its tokenizer has %d", dir, m.Config().VocabSize, tok.VocabSize())
	}
	if o.Digest, err = train.FileDigest(filepath.Join(dir, hf.WeightsFile)); err != nil {
		return err
	}
	n := f.concurrency
	if n == 0 {
		n = f.threads
	}
	for range n {
		// The threads are shared out, so that a full house is not slower than one guest.
		d := gpt.NewDecoder(m, par.NewPool(max(1, f.threads/n)), set)
		o.Engines = append(o.Engines, generate.New(d, tok, m.Config().BlockSize))
	}
	o.Encoder, o.ContextLength = tok, m.Config().BlockSize
	return nil
}

func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return binary.LittleEndian.Uint64(b[:])
}

func randomID() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
