package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/quality"
)

// PrepareOptions say what Prepare does. Take them from DefaultPrepare or
// DefaultPrepareQA.
type PrepareOptions struct {
	Inputs []string // text, *.jsonl, either as .gz or .zst, or directories of these
	RunDir string

	Format      string // dataset.FormatText or dataset.FormatQA
	Separator   string // see corpus.ParseSeparator; question-answer records end with <|endoftext|>
	JSONField   string // of *.jsonl
	MaxDocBytes int

	Clean     corpus.CleanOptions
	Filter    corpus.FilterOptions
	DropExact bool
	DropNear  bool
	Near      corpus.NearOptions // of DropNear and of the check for leakage

	Split     corpus.Fractions
	SplitSeed uint64
	// Memorize puts every document into every split, for drills where
	// remembering is the aim. The report counts all of it as leakage.
	Memorize bool

	Tokenizer    string // directory or tokenizer.json to use; "" learns one from the train split
	VocabSize    int    // of the one that is learnt
	MinFrequency int    // of a pair that is merged

	Quality          quality.Options
	Sensitivity      []string // separators of the table
	SensitivityBytes int64    // how much of the corpus the table is about; 0 is all

	BlockSize int // the train split must hold one block; 0 does not check
	Workers   int // 0 is one for each CPU; the output does not depend on it

	Logf func(format string, args ...any) // progress in words; may be nil
}

// DefaultPrepare returns the options for running text.
func DefaultPrepare() PrepareOptions {
	return PrepareOptions{
		Format: dataset.FormatText, Separator: corpus.DefaultSeparator,
		JSONField: corpus.DefaultJSONField, MaxDocBytes: corpus.DefaultMaxDocBytes,
		Clean: corpus.DefaultClean(), Filter: corpus.DefaultFilter(),
		DropExact: true, DropNear: true, Near: corpus.DefaultNear(),
		Split:     corpus.DefaultFractions(),
		VocabSize: 4096, MinFrequency: 2,
		Quality:          quality.DefaultOptions(),
		Sensitivity:      []string{corpus.DefaultSeparator, "blank-line", "file"},
		SensitivityBytes: 64 << 20,
	}
}

// DefaultPrepareQA returns the options for question-answer records: they are
// short and alike by nature, so nothing is dropped for that.
func DefaultPrepareQA() PrepareOptions {
	o := DefaultPrepare()
	o.Format, o.Separator = dataset.FormatQA, corpus.QASeparator().String()
	o.Clean.HTML, o.Clean.Wiki = false, false
	o.Filter = corpus.FilterOptions{}
	o.DropNear = false
	o.Quality.MinChars = 0
	o.Sensitivity = nil
	return o
}

// Files that Prepare writes beside the splits and meta.json.
const (
	DataReportFile    = "data_report.json"
	QualityReportFile = "data_quality_report.json"
	tokenizerFile     = "tokenizer.json"
	prepareTemp       = ".prepare-"
)

// PrepareReport is what Prepare wrote.
type PrepareReport struct {
	Meta    dataset.Meta
	Data    DataReport
	Quality quality.Report
	Files   []string // names in the run directory, meta.json last
}

// Prepare turns files of text into the files of tokens that training and
// evaluation read, and reports on them. Nothing in the run directory changes
// until all of it is there; then meta.json goes first and comes last, so that a
// directory with a meta.json is whole. A second Prepare, or a Train, that works in
// the run directory at the same time is refused.
//
// Equal inputs and options give equal bytes, whatever the number of workers.
func Prepare(ctx context.Context, opts PrepareOptions) (PrepareReport, error) {
	p, err := prepareInputs(opts)
	if err != nil {
		return PrepareReport{}, err
	}
	if err := p.validate(); err != nil {
		return PrepareReport{}, err
	}
	defer p.cleanUp()
	if err := p.act(ctx); err != nil {
		return PrepareReport{}, prepareError(err)
	}
	if err := p.write(ctx); err != nil {
		return PrepareReport{}, prepareError(err)
	}
	return p.report, nil
}

// preparing is one run of Prepare.
type preparing struct {
	opts   PrepareOptions
	sep    corpus.Separator
	seps   []corpus.Separator // of the sensitivity table
	files  []corpus.File
	lock   *runLock
	tmp    string
	spools [corpus.Splits]*spool
	leaks  *corpus.LeakCheck
	report PrepareReport
}

// prepareInputs finds the files and gives every option its value.
func prepareInputs(opts PrepareOptions) (*preparing, error) {
	if opts.Workers == 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Logf == nil {
		opts.Logf = func(string, ...any) {}
	}
	if opts.Format == dataset.FormatQA {
		opts.Separator = corpus.QASeparator().String()
	}
	if len(opts.Inputs) == 0 {
		return nil, exitcode.Errorf(exitcode.Usage, "prepare: no input: name files or directories of text")
	}
	if opts.RunDir == "" {
		return nil, exitcode.Errorf(exitcode.Usage, "prepare: no run directory")
	}
	p := &preparing{opts: opts}
	for _, in := range opts.Inputs {
		if fetchedInto(opts.RunDir, in) {
			continue
		}
		if within(opts.RunDir, in) || within(in, opts.RunDir) {
			return nil, exitcode.Errorf(exitcode.Usage, "prepare: input %s and run directory %s hold each other: prepare would read what it writes", in, opts.RunDir)
		}
	}
	files, err := corpus.Files(opts.Inputs)
	if err != nil {
		return nil, prepareError(err)
	}
	p.files = files
	return p, nil
}

// fetchedInto reports whether an input lies where FetchInputs puts it, which
// Prepare leaves alone.
func fetchedInto(run, path string) bool {
	rel, err := filepath.Rel(run, path)
	return err == nil && strings.HasPrefix(rel, inputsTemp)
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	d, err1 := filepath.Abs(dir)
	a, err2 := filepath.Abs(path)
	if err1 != nil || err2 != nil {
		return false
	}
	rel, err := filepath.Rel(d, a)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (p *preparing) validate() error {
	o := p.opts
	var err error
	if p.sep, err = corpus.ParseSeparator(o.Separator); err != nil {
		return exitcode.Errorf(exitcode.Usage, "prepare: %w", err)
	}
	for _, name := range o.Sensitivity {
		s, err := corpus.ParseSeparator(name)
		if err != nil {
			return exitcode.Errorf(exitcode.Usage, "prepare: sensitivity: %w", err)
		}
		p.seps = append(p.seps, s)
	}
	for _, err := range []error{o.Filter.Validate(), o.Near.Validate(), o.Split.Validate(), o.Quality.Validate()} {
		if err != nil {
			return exitcode.Errorf(exitcode.Usage, "prepare: %w", err)
		}
	}
	switch {
	case o.Format != dataset.FormatText && o.Format != dataset.FormatQA:
		return exitcode.Errorf(exitcode.Usage, "prepare: format is %q: want %s or %s", o.Format, dataset.FormatText, dataset.FormatQA)
	case o.MaxDocBytes < 1<<10 || o.MaxDocBytes > 1<<30:
		return exitcode.Errorf(exitcode.Usage, "prepare: max-doc-bytes is %d: want %d to %d", o.MaxDocBytes, 1<<10, 1<<30)
	case o.Tokenizer == "" && (o.VocabSize < 257 || o.VocabSize > 1<<20):
		return exitcode.Errorf(exitcode.Usage, "prepare: vocab-size is %d: want 257 (256 bytes and <|endoftext|>) to %d", o.VocabSize, 1<<20)
	case o.BlockSize < 0 || o.Workers < 0 || o.SensitivityBytes < 0:
		return exitcode.Errorf(exitcode.Usage, "prepare: block-size %d, workers %d, sensitivity-bytes %d: want 0 or more", o.BlockSize, o.Workers, o.SensitivityBytes)
	}
	return nil
}

// act builds everything in a directory beside its destination.
func (p *preparing) act(ctx context.Context) error {
	if err := atomicfile.MkdirAll(p.opts.RunDir); err != nil {
		return err
	}
	var err error
	if p.lock, err = lockRun(p.opts.RunDir); err != nil {
		return err
	}
	stale, _ := filepath.Glob(filepath.Join(p.opts.RunDir, prepareTemp+"*"))
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if p.tmp, err = os.MkdirTemp(p.opts.RunDir, prepareTemp+"*"); err != nil {
		return err
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	// What reading remembered of every document is of no more use: give it back
	// before learning and encoding remember things of their own.
	debug.FreeOSMemory()
	tok, err := p.tokenizer(ctx)
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	if err := p.encode(ctx, tok); err != nil {
		return err
	}
	if len(p.seps) > 0 {
		p.opts.Logf("prepare: the same rules under %d separators", len(p.seps))
		ropts := p.readerOptions()
		ropts.Limit = p.opts.SensitivityBytes
		p.report.Quality.SensitivityBytes = ropts.Limit
		p.report.Quality.Sensitivity, err = quality.Sensitivity(ctx, p.files, ropts, p.seps, p.opts.Quality, p.opts.Workers)
	}
	return err
}

func (p *preparing) cleanUp() {
	for _, s := range p.spools {
		s.close()
	}
	if p.tmp != "" {
		_ = os.RemoveAll(p.tmp)
	}
	p.lock.release()
}

// prepareError gives an error its exit code. The end of the context keeps its
// own, what the operating system refused is a matter of input or output, and the
// rest is about what was read.
func prepareError(err error) error {
	var have *exitcode.Error
	var signal exitcode.SignalError
	var errno syscall.Errno
	switch {
	case errors.As(err, &have), errors.As(err, &signal), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist):
		return exitcode.Errorf(exitcode.IO, "prepare: %w", err)
	}
	return exitcode.Errorf(exitcode.BadInput, "prepare: %w", err)
}

func (p *preparing) readerOptions() corpus.ReaderOptions {
	return corpus.ReaderOptions{
		Separator: p.sep, JSONField: p.opts.JSONField, MaxDocBytes: p.opts.MaxDocBytes,
		MustEnd: p.opts.Format == dataset.FormatQA,
	}
}

// fail is an error about the corpus as a whole.
func (p *preparing) fail(format string, args ...any) error {
	name := p.opts.Inputs[0]
	if len(p.opts.Inputs) > 1 {
		name = fmt.Sprintf("%s and %d more", name, len(p.opts.Inputs)-1)
	}
	return fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
}
