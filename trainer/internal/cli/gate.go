package cli

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

// policyFlags are the parameters of a gate beside its policy file.
type policyFlags struct {
	file    string
	numbers map[string]*float64
	minIter int
	minDocs int
	noise   string
	quality bool
	image   bool
	early   bool
	sampled bool
	files   []string
}

// unset is the default of thresholds: no threshold.
var unset = math.NaN()

func (p *policyFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	p.numbers = map[string]*float64{}
	for name, usage := range map[string]string{
		"max-val-loss":       "highest validation loss, nats per token",
		"max-test-loss":      "highest test loss, nats per token",
		"max-perplexity":     "highest perplexity of the test split",
		"max-bits-per-byte":  "most bits per byte of the test split",
		"max-regression":     "how much worse than the promoted model the test loss may be; negative asks for better",
		"max-standard-error": "largest standard error of both losses",
	} {
		p.numbers[name] = f.Float64(name, unset, usage)
		f.Lookup(name).DefValue = ""
	}
	d := gate.Default()
	f.StringVar(&p.file, "policy", "", "policy file, YAML or JSON, with these names in snake_case; flags win")
	f.IntVar(&p.minIter, "min-train-iter", 0, "lowest training step of the candidate; 0 is any")
	f.IntVar(&p.minDocs, "min-documents", d.MinDocuments, "fewest documents of a held-out split")
	f.StringVar(&p.noise, "within-noise", d.WithinNoise, "of a value whose interval holds its threshold: block or pass")
	f.BoolVar(&p.quality, "require-data-quality", d.RequireDataQuality, "ask for the data quality gate")
	f.BoolVar(&p.image, "require-image", d.RequireImage, "ask for a code image; one that is given must be by digest anyway")
	f.BoolVar(&p.early, "allow-early-stop", d.AllowEarlyStop, "take a candidate whose training a policy stopped")
	f.BoolVar(&p.sampled, "allow-sampled", d.AllowSampled, "take an evaluation of a sample")
	f.StringSliceVar(&p.files, "required-files", d.RequiredFiles, "files that must be in the run directory")
}

// policy reads the file, if there is one, over base, and lets flags win.
func (p *policyFlags) policy(cmd *cobra.Command, base gate.Policy) (gate.Policy, error) {
	pol := base
	if p.file != "" {
		f, err := openFile("policy", p.file)
		if err != nil {
			return pol, err
		}
		defer f.Close()
		if pol, err = gate.ReadPolicy(f, base); err != nil {
			return pol, exitcode.Errorf(exitcode.Usage, "%s: %w", p.file, err)
		}
	}
	for name, to := range map[string]**float64{
		"max-val-loss": &pol.MaxValLoss, "max-test-loss": &pol.MaxTestLoss, "max-perplexity": &pol.MaxPerplexity,
		"max-bits-per-byte": &pol.MaxBitsPerByte, "max-regression": &pol.MaxRegression, "max-standard-error": &pol.MaxStandardError,
	} {
		if cmd.Flag(name).Changed {
			*to = p.numbers[name]
		}
	}
	for name, take := range map[string]func(){
		"min-train-iter":       func() { pol.MinTrainIter = &p.minIter },
		"min-documents":        func() { pol.MinDocuments = p.minDocs },
		"within-noise":         func() { pol.WithinNoise = p.noise },
		"require-data-quality": func() { pol.RequireDataQuality = p.quality },
		"require-image":        func() { pol.RequireImage = p.image },
		"allow-early-stop":     func() { pol.AllowEarlyStop = p.early },
		"allow-sampled":        func() { pol.AllowSampled = p.sampled },
		"required-files":       func() { pol.RequiredFiles = p.files },
	} {
		if cmd.Flag(name).Changed {
			take()
		}
	}
	if err := pol.Validate(); err != nil {
		return pol, exitcode.Errorf(exitcode.Usage, "%w", err)
	}
	return pol, nil
}

func newGate(a *App) *cobra.Command {
	var o stage.GateOptions
	var r runFlags
	var t targetFlags
	var p policyFlags
	var image string
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Decide whether a candidate may be promoted",
		Long: `Judge the evaluated candidate of a run by a policy and exit with 1 when it is
blocked, after writing RUN/gate_report.json with every rule and printing every
reason. What is missing, unreadable or about another model blocks, and so does a
store that does not answer. A value is judged by its whole 95 % interval.`,
		Example: `  trainer gate --run-dir runs/a --store file:///srv/models --max-val-loss 6 --max-regression 0.05
  trainer gate --run-dir runs/a --store s3://models/llm --policy gate.yaml --image "$IMAGE"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Without a policy there is no verdict, and an earlier one must go. A
			// store that cannot be opened is one that does not answer: the gate
			// says so and blocks.
			o.Policy, o.PolicyErr = p.policy(cmd, gate.Default())
			o.Target, o.StoreErr = t.open(cmd.Context())
			o.Recording = a.recording(machineFlags{})
			if image != "" {
				o.Code.Image = image
			}
			o.PolicyFile, o.RunID, o.RunDir, o.Checkpoint, o.Out = p.file, r.id, r.dir, r.checkpoint, a.people()
			rep, err := stage.Gate(cmd.Context(), o)
			return hand(a, rep, err)
		},
	}
	r.add(cmd)
	t.add(cmd)
	p.add(cmd)
	addImage(cmd, &image)
	addResults(cmd, &o.ResultsDir)
	return cmd
}
