package stage

import (
	"context"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// Recording is what all lineage records of a process share.
type Recording struct {
	RunID string // "" takes that of the run directory
	// Owner has the run directory until Report or a failed training gives it back,
	// so that no other one works in it between two stages; "" for nobody.
	Owner    string
	TakeOver bool // prepare takes it from whoever has it
	Now      func() time.Time
	Code     lineage.Code
	Host     lineage.Host
	// Origins are the places that input files were downloaded from, by local
	// path; others are where they lie.
	Origins map[string]string
}

// prepareStage is the stage that makes a run directory.
const prepareStage = "prepare"

// begin claims the run directory and starts the record of a stage.
func (r Recording) begin(dir, stage string) (*lineage.Recorder, string, error) {
	if stage != prepareStage {
		if err := checkRun(dir); err != nil {
			return nil, "", err
		}
	}
	id, err := ClaimRun(dir, r.RunID)
	if err != nil {
		return nil, "", err
	}
	if err := own(dir, r.Owner, r.TakeOver && stage == prepareStage, r.Now()); err != nil {
		return nil, "", err
	}
	return lineage.Begin(lineage.Options{Run: dir, RunID: id, Stage: stage, Now: r.Now, Code: r.Code, Host: r.Host}), id, nil
}

// writeRecord ends a record; what goes wrong is a fault of the disk.
func writeRecord(rec *lineage.Recorder, outcome string) error {
	if err := rec.Write(outcome); err != nil {
		return exitcode.Errorf(exitcode.IO, "lineage: %w", err)
	}
	return nil
}

// maxSources is how many corpus files a record lists one by one.
const maxSources = 1000

// RecordedPrepare is Prepare with a lineage record.
func RecordedPrepare(ctx context.Context, r Recording, o PrepareOptions) (PrepareReport, error) {
	rec, _, err := r.begin(o.RunDir, prepareStage)
	if err != nil {
		return PrepareReport{}, err
	}
	rep, err := Prepare(ctx, o)
	if err != nil {
		return rep, err
	}
	parameters(rec, map[string]any{
		"format": o.Format, "separator": rep.Meta.Separator, "json-field": o.JSONField, "tokenizer": r.origin(o.Tokenizer),
		"vocab-size": rep.Meta.VocabSize, "min-frequency": o.MinFrequency, "drop-exact": o.DropExact, "drop-near": o.DropNear,
	})
	rec.Seed("split-seed", o.SplitSeed)
	r.sources(rec, o, rep)
	r.givenTokenizer(ctx, rec, o.Tokenizer)
	for _, f := range rep.Files {
		rec.Output(ctx, lineage.KindData, f)
	}
	return rep, writeRecord(rec, lineage.Succeeded)
}

// origin is where a file or folder was downloaded from; others are called as they were
// given. The folder of a download has a name that no second run has.
func (r Recording) origin(where string) string {
	for local, url := range r.Origins {
		switch where {
		case local:
			return url
		case filepath.Dir(local):
			return strings.TrimSuffix(url, "/"+filepath.Base(local))
		}
	}
	return where
}

// givenTokenizer notes the files of a tokenizer from outside.
func (r Recording) givenTokenizer(ctx context.Context, rec *lineage.Recorder, where string) {
	if where == "" {
		return
	}
	abs, err := filepath.Abs(where)
	if err != nil {
		return
	}
	files := []string{abs}
	if info, err := os.Stat(abs); err == nil && info.IsDir() {
		files = []string{filepath.Join(abs, bpe.TokenizerFile)}
		if _, err := os.Stat(files[0]); err != nil {
			files = []string{filepath.Join(abs, bpe.VocabFile), filepath.Join(abs, bpe.MergesFile)}
		}
	}
	for _, f := range files {
		origin, downloaded := r.Origins[f]
		if !downloaded {
			rec.Input(ctx, lineage.KindConfig, f)
			continue
		}
		// The copy goes; what it was made of stays.
		if sum, err := lineage.HashFile(ctx, f); err == nil {
			rec.Add(lineage.Artifact{Name: filepath.Base(f), URI: origin, Kind: lineage.KindConfig, SHA256: sum})
		}
	}
}

// sources notes the files of the corpus with their digests as prepare read them.
func (r Recording) sources(rec *lineage.Recorder, o PrepareOptions, rep PrepareReport) {
	if n := len(rep.Data.Sources); n == 0 || n > maxSources {
		rec.Add(lineage.Artifact{Name: "corpus", URI: "urn:trainyard:corpus", Kind: lineage.KindCorpus, SHA256: rep.Data.CorpusSHA256})
		return
	}
	where := map[string]string{}
	if files, err := corpus.Files(o.Inputs); err == nil { // gone again since: no place to tell
		for _, f := range files {
			if origin, ok := r.Origins[f.Path]; ok {
				where[f.Name] = origin
			} else if abs, err := filepath.Abs(f.Path); err == nil {
				where[f.Name] = fileURI(abs)
			}
		}
	}
	for _, s := range rep.Data.Sources {
		uri := where[s.Name]
		if uri == "" {
			uri = "urn:trainyard:corpus"
		}
		rec.Add(lineage.Artifact{Name: s.Name, URI: uri, Kind: lineage.KindCorpus, SHA256: s.SHA256})
	}
}

func fileURI(abs string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()
}

// RecordedTrain is Train with a lineage record. An interrupted training has no
// record: the one that ends it does.
func RecordedTrain(ctx context.Context, r Recording, o TrainOptions) (TrainReport, error) {
	rec, id, err := r.begin(o.RunDir, "train")
	if err != nil {
		return TrainReport{}, err
	}
	o.RunID = id
	rep, err := Train(ctx, o)
	if err != nil {
		return rep, err
	}
	if rep.Resumed == rep.Step && recorded(o.RunDir, rep) {
		return rep, nil // nothing was trained: the record of who did stays
	}
	for _, f := range o.Config.Identity() {
		if f.Name != "seed" { // it has a place of its own
			rec.Parameter(f.Name, f.Value)
		}
	}
	parameters(rec, map[string]any{
		"eval-interval": o.Config.EvalInterval, "layers": o.Model.Layers, "heads": o.Model.Heads, "channels": o.Model.Channels,
		"steps": rep.Step, "resumed-at": rep.Resumed,
	})
	if rep.StopReason != "" {
		rec.Parameter("stop-reason", rep.StopReason)
	}
	rec.Seed("seed", o.Config.Seed)
	for _, f := range []string{dataset.Bin(trainSplit), dataset.Bin(valSplit), tokenizerFile, dataset.MetaFile} {
		if _, err := os.Stat(filepath.Join(o.RunDir, f)); err == nil {
			rec.Input(ctx, lineage.KindData, f)
		}
	}
	if o.From != "" {
		if sum, err := modelDigest(o.From); err == nil && sum != "" {
			abs, _ := filepath.Abs(filepath.Join(o.From, hf.WeightsFile))
			uri, downloaded := r.Origins[abs]
			if !downloaded {
				uri = fileURI(abs)
			}
			rec.Add(lineage.Artifact{Name: "base model", URI: uri, Kind: lineage.KindConfig, SHA256: hexDigest(sum)})
		}
	}
	for _, dir := range []string{train.BestDir, train.LastDir} {
		if err := recordModel(ctx, rec, o.RunDir, dir); err != nil {
			return rep, err
		}
	}
	if _, err := os.Stat(filepath.Join(o.RunDir, train.HistoryName)); err == nil {
		rec.Output(ctx, lineage.KindFile, train.HistoryName)
	}
	return rep, writeRecord(rec, lineage.Succeeded)
}

// recorded says whether there is a record of the training that ended so.
func recorded(run string, rep TrainReport) bool {
	recs, err := lineage.ReadDir(filepath.Join(run, lineage.Dir))
	if err != nil {
		return false
	}
	for _, r := range recs {
		if r.Stage != "train" {
			continue
		}
		return slices.ContainsFunc(r.Outputs, func(a lineage.Artifact) bool {
			return a.Kind == lineage.KindModel && a.Name == train.LastDir && "sha256:"+a.SHA256 == rep.LastDigest
		})
	}
	return false
}

// recordModel notes a model directory: the model itself and the files that go
// with it into the registry. What resuming needs stays in the run.
func recordModel(ctx context.Context, rec *lineage.Recorder, run, dir string) error {
	sum, err := modelDigest(filepath.Join(run, dir))
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "lineage: %w", err)
	}
	if sum == "" {
		return nil
	}
	rec.AddOutput(lineage.Artifact{Name: dir, Kind: lineage.KindModel, SHA256: hexDigest(sum)})
	files, err := modelFiles(filepath.Join(run, dir))
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "lineage: %w", err)
	}
	for _, f := range files {
		rec.Output(ctx, lineage.KindFile, path.Join(dir, f))
	}
	return nil
}

// modelFiles lists the files of a model directory that make the model usable:
// all but those that only resuming a training needs.
func modelFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && !strings.HasPrefix(n, ".") && n != momentsFile && n != train.RecordName {
			names = append(names, n)
		}
	}
	return names, nil
}

// parameters notes several parameters at once.
func parameters(rec *lineage.Recorder, m map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		rec.Parameter(k, m[k])
	}
}

// RecordedSample is GenerateSamples with a lineage record, where there is a run
// directory to hold one.
func RecordedSample(ctx context.Context, r Recording, o SampleOptions) (SampleReport, error) {
	if o.RunDir == "" {
		return GenerateSamples(ctx, o)
	}
	rec, _, err := r.begin(o.RunDir, "sample")
	if err != nil {
		return SampleReport{}, err
	}
	rep, err := GenerateSamples(ctx, o)
	if err != nil {
		return rep, err
	}
	parameters(rec, map[string]any{
		"max-tokens": o.Sampling.MaxTokens, "temperature": o.Sampling.Temperature, "top-k": o.Sampling.TopK, "top-p": o.Sampling.TopP, "prompts": len(rep.Samples),
	})
	rec.Seed("seed", o.Sampling.Seed)
	if sum := hexDigest(rep.Tuned.Digest); sum != "" {
		a := lineage.Artifact{Name: filepath.Base(rep.Tuned.Source), Kind: lineage.KindModel, SHA256: sum}
		if o.Model != "" && !within(o.RunDir, o.Model) {
			a.Kind = lineage.KindConfig // a model of elsewhere
			if abs, err := filepath.Abs(filepath.Join(o.Model, hf.WeightsFile)); err == nil {
				a.URI = fileURI(abs)
			}
		}
		rec.Add(a)
	}
	rec.Output(ctx, lineage.KindFile, SamplesFile)
	return rep, writeRecord(rec, lineage.Succeeded)
}
