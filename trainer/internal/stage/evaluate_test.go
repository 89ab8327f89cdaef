package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// trainedRun is a run that is prepared and trained.
func trainedRun(t *testing.T) RunOptions {
	t.Helper()
	o := life(t, corpusFile(t), fileStore(t))
	if err := (&running{o: o}).prepareAndTrain(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestEvaluateGivesTheSameBytesForAnyThreads(t *testing.T) {
	o := trainedRun(t)
	var first []byte
	for _, threads := range []int{1, 2, 3, 8} {
		e := evaluateOf(o)
		e.Threads = threads
		if _, err := Evaluate(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		b := readFile(t, o, EvalReportFile)
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%d threads give another report", threads)
		}
	}
}

// Another way to the same loss: the logits of each row through a log-softmax in
// float64, summed over the whole split, on rows cut by hand.
func TestEvaluateAgreesWithLogitsByHand(t *testing.T) {
	o := trainedRun(t)
	rep, err := Evaluate(t.Context(), evaluateOf(o))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := dataset.ReadMeta(o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	f, x, err := meta.OpenSplit(o.RunDir, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tokens := make([]int32, f.Len()+1)
	tokens[0] = meta.EndOfText
	if err := f.Read(tokens[1:], 0); err != nil {
		t.Fatal(err)
	}
	m, err := hf.Load(filepath.Join(o.RunDir, o.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	pool := par.NewPool(1)
	defer pool.Close()
	block := m.Config().BlockSize
	set, err := kernel.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	session, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: 1, MaxT: block, Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	v := m.Config().VocabSize
	for at := 0; at+1 < len(tokens); at += block {
		n := min(block, len(tokens)-1-at)
		logits, err := session.Logits(gpt.Batch{B: 1, T: n, Inputs: tokens[at : at+n]})
		if err != nil {
			t.Fatal(err)
		}
		for p := range n {
			row := logits[p*v : (p+1)*v]
			var total float64
			for _, l := range row {
				total += math.Exp(float64(l))
			}
			sum += math.Log(total) - float64(row[tokens[at+p+1]])
		}
	}
	want := sum / float64(f.Len())
	got := rep.Splits.Test
	if math.Abs(got.Loss.Value-want) > 1e-5 {
		t.Errorf("loss %v, by hand %v", got.Loss.Value, want)
	}
	if got.Tokens != f.Len() || got.Bytes != x.TotalBytes() || got.DocumentsInSplit != x.Len() {
		t.Errorf("%d tokens, %d bytes, %d documents; the split has %d, %d, %d", got.Tokens, got.Bytes, got.DocumentsInSplit, f.Len(), x.TotalBytes(), x.Len())
	}
	if bits := sum / math.Ln2 / float64(x.TotalBytes()); math.Abs(got.BitsPerByte.Value-bits) > 1e-5 {
		t.Errorf("bits per byte %v, by hand %v", got.BitsPerByte.Value, bits)
	}
}

// An untrained model guesses: its loss is about ln V.
func TestEvaluateOfAnUntrainedModelIsThatOfGuessing(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	o.Train.Config.LearningRate, o.Train.Config.MinLearningRate, o.Train.Config.MaxIters, o.Train.Config.Warmup = 1e-12, 0, 1, 0
	if err := (&running{o: o}).prepareAndTrain(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep, err := Evaluate(t.Context(), evaluateOf(o))
	if err != nil {
		t.Fatal(err)
	}
	if want := math.Log(400); math.Abs(rep.TestLoss-want) > 0.01*want {
		t.Errorf("loss %v, ln V is %v", rep.TestLoss, want)
	}
	if rep.TrainIter != 1 {
		t.Errorf("train_iter %d, want 1", rep.TrainIter)
	}
}

func TestSampledEvaluationSaysSoAndDoesNotPass(t *testing.T) {
	o := trainedRun(t)
	e := evaluateOf(o)
	e.Sample, e.Seed = 8, 7
	rep, err := Evaluate(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Mode != evaluate.Sampled || rep.Sample.Documents != 8 || rep.Splits.Test.Clusters != 8 || rep.Splits.Test.DocumentsInSplit <= 8 {
		t.Errorf("got %+v, %+v", rep.Mode, rep.Splits.Test)
	}
	first := readFile(t, o, EvalReportFile)
	if _, err := Evaluate(t.Context(), e); err != nil || !bytes.Equal(first, readFile(t, o, EvalReportFile)) {
		t.Errorf("the same seed gives another report, %v", err)
	}
	if g, err := Gate(t.Context(), gateOf(o)); !errors.Is(err, ErrBlocked) || !strings.Contains(strings.Join(g.Reasons, "\n"), "sampled") {
		t.Errorf("gate: %v", err)
	}
	e.Seed = 8
	if _, err := Evaluate(t.Context(), e); err != nil || bytes.Equal(first, readFile(t, o, EvalReportFile)) {
		t.Errorf("another seed gives the same report, %v", err)
	}
}

// The six keys come first, as dashboards of the published pipeline read them.
func TestEvalReportBeginsWithTheSixKeys(t *testing.T) {
	o := trainedRun(t)
	if _, err := Evaluate(t.Context(), evaluateOf(o)); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(readFile(t, o, EvalReportFile)))
	var keys []string
	for len(keys) < 6 {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := token.(string); ok {
			keys = append(keys, s)
		}
	}
	if got := strings.Join(keys, " "); got != "val_loss test_loss perplexity val_perplexity train_iter params_M" {
		t.Errorf("keys %s", got)
	}
}

// 12 steps, evaluated every 5: the last step is evaluated and can be the
// candidate, and the report says of which step it is.
func TestTheLastStepCanBeTheCandidate(t *testing.T) {
	o := trainedRun(t)
	rep, err := Evaluate(t.Context(), evaluateOf(o))
	if err != nil {
		t.Fatal(err)
	}
	if rep.TrainIter != 12 {
		t.Errorf("train_iter %d, want 12", rep.TrainIter)
	}
	r, err := train.ReadRecord(filepath.Join(o.RunDir, train.LastDir))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Evals); r.Evals[n-1].Step != 12 {
		t.Errorf("last evaluated at step %d", r.Evals[n-1].Step)
	}
	e := evaluateOf(o)
	e.Checkpoint = train.BestDir
	if rep, err = Evaluate(t.Context(), e); err != nil || rep.TrainIter != r.BestStep {
		t.Errorf("best: train_iter %d, %v, want %d", rep.TrainIter, err, r.BestStep)
	}
}

func TestEvaluateRefuses(t *testing.T) {
	good := trainedRun(t)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, e *EvaluateOptions)
		code  int
		want  string
	}{
		"no run directory":      {func(_ *testing.T, e *EvaluateOptions) { e.RunDir = "" }, exitcode.Usage, "no run directory"},
		"another run":           {func(_ *testing.T, e *EvaluateOptions) { e.RunID = "other" }, exitcode.BadInput, `not "other"`},
		"nothing prepared":      {func(t *testing.T, e *EvaluateOptions) { e.RunDir = t.TempDir() }, exitcode.BadInput, "run prepare first"},
		"not trained":           {func(t *testing.T, e *EvaluateOptions) { remove(t, e.RunDir, train.LastDir) }, exitcode.BadInput, "train first"},
		"no weights":            {func(t *testing.T, e *EvaluateOptions) { remove(t, e.RunDir, "last/model.safetensors") }, exitcode.BadInput, "no model in"},
		"unknown checkpoint":    {func(_ *testing.T, e *EvaluateOptions) { e.Checkpoint = "../x" }, exitcode.Usage, `checkpoint is "../x"`},
		"negative sample":       {func(_ *testing.T, e *EvaluateOptions) { e.Sample = -1 }, exitcode.Usage, "sample is -1"},
		"negative threads":      {func(_ *testing.T, e *EvaluateOptions) { e.Threads = -1 }, exitcode.Usage, "threads is -1"},
		"unknown instructions":  {func(_ *testing.T, e *EvaluateOptions) { e.ISA = "mmx" }, exitcode.Usage, "mmx"},
		"another test split":    {func(t *testing.T, e *EvaluateOptions) { flip(t, e.RunDir, "test.bin") }, exitcode.Integrity, "test.bin is"},
		"test split is cut":     {func(t *testing.T, e *EvaluateOptions) { cut(t, e.RunDir, "test.bin") }, exitcode.BadInput, "test.bin"},
		"another tokenizer":     {func(t *testing.T, e *EvaluateOptions) { otherTokenizer(t, e.RunDir) }, exitcode.BadInput, "another tokenizer"},
		"weights are cut":       {func(t *testing.T, e *EvaluateOptions) { cut(t, e.RunDir, "last/model.safetensors") }, exitcode.BadInput, "model.safetensors"},
		"weights of NaN":        {func(t *testing.T, e *EvaluateOptions) { setWeights(t, e.RunDir, float32(math.NaN())) }, exitcode.BadInput, "is NaN"},
		"a loss of NaN":         {func(t *testing.T, e *EvaluateOptions) { setWeights(t, e.RunDir, math.MaxFloat32) }, exitcode.Diverged, "not a finite number"},
		"a result too large":    {func(t *testing.T, e *EvaluateOptions) { e.ResultsDir = filepath.Join(t.TempDir(), "x\x00") }, exitcode.IO, "x"},
		"meta of another split": {func(t *testing.T, e *EvaluateOptions) { remove(t, e.RunDir, "test.idx") }, exitcode.BadInput, "test.idx"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			o.RunDir = filepath.Join(t.TempDir(), "run1")
			if err := os.CopyFS(o.RunDir, os.DirFS(good.RunDir)); err != nil {
				t.Fatal(err)
			}
			e := evaluateOf(o)
			c.spoil(t, &e)
			_, err := Evaluate(t.Context(), e)
			if code(err) != c.code || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("exit code %d, want %d: %v, want %q", code(err), c.code, err, c.want)
			}
			if name != "a result too large" && isThere(o, EvalReportFile) {
				t.Error("a report was written")
			}
		})
	}
}

// Results are there on every path, empty where the stage failed.
func TestEvaluateResultsOnEveryPath(t *testing.T) {
	o := trainedRun(t)
	e := evaluateOf(o)
	for _, fails := range []bool{false, true} {
		e.ResultsDir = t.TempDir()
		if fails {
			e.Checkpoint = "none"
		}
		rep, err := Evaluate(t.Context(), e)
		if (err != nil) != fails {
			t.Fatal(err)
		}
		for _, name := range evaluateResults {
			b, err := os.ReadFile(filepath.Join(e.ResultsDir, name))
			if err != nil || (len(b) == 0) != fails {
				t.Errorf("failed %v: %s is %q, %v", fails, name, b, err)
			}
			if name == "model-digest" && !fails && string(b) != "sha256:"+rep.Candidate.Digest {
				t.Errorf("digest %s", b)
			}
		}
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, dir, name string, f func(b []byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, dir, name string) {
	change(t, dir, name, func(b []byte) []byte { b[10] ^= 1; return b })
}

func cut(t *testing.T, dir, name string) {
	change(t, dir, name, func(b []byte) []byte { return b[:len(b)/2/16*16] })
}

// otherTokenizer puts a tokenizer of other merges into the checkpoint.
func otherTokenizer(t *testing.T, dir string) {
	t.Helper()
	p := smallPrepare(t, textFile(t, sentences(9, 100)))
	p.Sensitivity = nil
	mustPrepare(t, p)
	b, err := os.ReadFile(filepath.Join(p.RunDir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "last", "tokenizer.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// setWeights makes all embeddings the same number.
func setWeights(t *testing.T, dir string, to float32) {
	t.Helper()
	last := filepath.Join(dir, "last")
	m, err := hf.Load(last)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Params()[0].Data {
		m.Params()[0].Data[i] = to
	}
	if _, err := hf.Save(last, m, hf.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Weights that were put over the evaluated ones must not pass on its figures.
func TestGateWantsTheEvaluatedWeights(t *testing.T) {
	o := trainedRun(t)
	if _, err := Evaluate(t.Context(), evaluateOf(o)); err != nil {
		t.Fatal(err)
	}
	if _, err := Gate(t.Context(), gateOf(o)); err != nil {
		t.Fatal(err)
	}
	flip(t, o.RunDir, "last/tokenizer.json") // not the weights
	change(t, o.RunDir, "last/model.safetensors", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	// The verdict of before does not help the new weights.
	if _, err := Promote(t.Context(), promoteOf(o)); code(err) != exitcode.Integrity || !strings.Contains(err.Error(), "the gate passed") {
		t.Errorf("promote: %v", err)
	}
	rep, err := Gate(t.Context(), gateOf(o))
	if !errors.Is(err, ErrBlocked) || !strings.Contains(rep.Reasons[0], "was evaluated: evaluate again") {
		t.Errorf("gate: %v", err)
	}
	if _, err := Promote(t.Context(), promoteOf(o)); code(err) != exitcode.Failed {
		t.Errorf("promote of a blocked one: %v", err)
	}
}

// The report is there before the error: a later step, or a person, can read why.
func TestGateWritesBeforeItFails(t *testing.T) {
	o := trainedRun(t)
	g := gateOf(o)
	g.ResultsDir = t.TempDir()
	_, err := Gate(t.Context(), g) // not evaluated
	if !errors.Is(err, ErrBlocked) {
		t.Fatal(err)
	}
	rep, err := readGateReport(filepath.Join(o.RunDir, GateReportFile))
	if err != nil || rep.Verdict != gate.Blocked || !strings.Contains(strings.Join(rep.Reasons, "\n"), "eval_report.json") {
		t.Errorf("report %+v, %v", rep, err)
	}
	for _, name := range gateResults {
		if _, err := os.Stat(filepath.Join(g.ResultsDir, name)); err != nil {
			t.Error(err)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(g.ResultsDir, "verdict")); string(b) != gate.Blocked {
		t.Errorf("verdict %q", b)
	}
	if b, _ := os.ReadFile(filepath.Join(g.ResultsDir, "reasons")); !strings.Contains(string(b), "eval_report.json") {
		t.Errorf("reasons %q", b)
	}
}

func TestPromoteRefuses(t *testing.T) {
	good := trainedRun(t)
	if _, err := Evaluate(t.Context(), evaluateOf(good)); err != nil {
		t.Fatal(err)
	}
	if _, err := Gate(t.Context(), gateOf(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, p *PromoteOptions)
		code  int
		want  string
	}{
		"no store":                {func(_ *testing.T, p *PromoteOptions) { p.Store = nil }, exitcode.Usage, "no store"},
		"no verdict":              {func(t *testing.T, p *PromoteOptions) { remove(t, p.RunDir, GateReportFile) }, exitcode.BadInput, "pass the gate first"},
		"judged for another name": {func(_ *testing.T, p *PromoteOptions) { p.Name = "other" }, exitcode.BadInput, "run the gate again"},
		"judged for another alias": {func(_ *testing.T, p *PromoteOptions) { p.Alias = "canary" },
			exitcode.BadInput, "run the gate again"},
		"judged another checkpoint": {func(t *testing.T, p *PromoteOptions) {
			flip(t, p.RunDir, "best/model.safetensors")
			p.Checkpoint = train.BestDir
		}, exitcode.Integrity, "the gate passed"},
		"verdict changed by hand": {func(t *testing.T, p *PromoteOptions) {
			change(t, p.RunDir, GateReportFile, func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"blocks": false`), []byte(`"blocks": true`), 1)
			})
		}, exitcode.BadInput, "its rules say"},
		"data changed since": {func(t *testing.T, p *PromoteOptions) { flip(t, p.RunDir, "train.bin") }, exitcode.Integrity, "train.bin is"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			o.RunDir = filepath.Join(t.TempDir(), "run1")
			if err := os.CopyFS(o.RunDir, os.DirFS(good.RunDir)); err != nil {
				t.Fatal(err)
			}
			p := promoteOf(o)
			c.spoil(t, &p)
			_, err := Promote(t.Context(), p)
			if code(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, want %d: %v, want %q", code(err), c.code, err, c.want)
			}
			if got := aliasOf(t, good.Store); got != "" {
				t.Fatalf("promoted %s", got)
			}
		})
	}
}

// Chains pairs uri and digest of an object result; the value must be JSON of
// strings without a line break.
func TestPromoteResults(t *testing.T) {
	o := trainedRun(t)
	if _, err := Evaluate(t.Context(), evaluateOf(o)); err != nil {
		t.Fatal(err)
	}
	if _, err := Gate(t.Context(), gateOf(o)); err != nil {
		t.Fatal(err)
	}
	p := promoteOf(o)
	p.ResultsDir = t.TempDir()
	p.Name = "other" // not what was judged
	if _, err := Promote(t.Context(), p); err == nil {
		t.Fatal("promoted")
	}
	if b, err := os.ReadFile(filepath.Join(p.ResultsDir, "MODEL_ARTIFACT_OUTPUTS")); string(b) != `{"digest":"","uri":""}` {
		t.Errorf("of a failure: %q, %v: Tekton wants an object whatever happens", b, err)
	}
	p = promoteOf(o)
	p.ResultsDir = t.TempDir()
	rep, err := Promote(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(p.ResultsDir, "MODEL_ARTIFACT_OUTPUTS"))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]string
	if err := json.Unmarshal(b, &object); err != nil || object["uri"] != rep.Location || object["digest"] != "sha256:"+rep.Version || bytes.ContainsAny(b, "\r\n") {
		t.Errorf("%q, %v", b, err)
	}
}

func TestLineageOfTheStoreFindsWhatIsSpoilt(t *testing.T) {
	o, s := ready(t)
	if _, err := Promote(t.Context(), promoteOf(o)); err != nil {
		t.Fatal(err)
	}
	meta, err := dataset.ReadMeta(o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	blob := "data/sha256/" + meta.Splits["train"].SHA256
	weights := "models/llm/" + aliasOf(t, s) + "/model.safetensors"
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  int
		want  string
	}{
		"data changed":    {func(t *testing.T, dir string) { flip(t, dir, blob) }, exitcode.Integrity, "train.bin is"},
		"weights changed": {func(t *testing.T, dir string) { flip(t, dir, weights) }, exitcode.Integrity, "the record says"},
		"card changed":    {func(t *testing.T, dir string) { flip(t, dir, path.Dir(weights)+"/README.md") }, exitcode.Integrity, "README.md of the version is"},
		"card gone":       {func(t *testing.T, dir string) { remove(t, dir, path.Dir(weights)+"/README.md") }, exitcode.Failed, "README.md of the version is not there"},
		"data gone":       {func(t *testing.T, dir string) { remove(t, dir, blob) }, exitcode.Failed, "train.bin with digest"},
	} {
		t.Run(name, func(t *testing.T) {
			clone := cloneStore(t, s)
			c.spoil(t, strings.TrimPrefix(clone.URL(), "file://"))
			target := o.Target
			target.Store = clone
			rep, err := Lineage(t.Context(), LineageOptions{Target: target})
			if code(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, want %d: %v, want %q", code(err), c.code, err, c.want)
			}
			if rep == nil || len(rep.Problems) == 0 {
				t.Error("no problems in the report")
			}
		})
	}
	t.Run("record replaced", func(t *testing.T) {
		clone := cloneStore(t, s)
		forged := bytes.Replace(readFile(t, o, "lineage/train.json"), []byte("Test CPU"), []byte("Best CPU"), 1)
		if _, err := clone.Put(t.Context(), "models/llm/"+aliasOf(t, s)+"/lineage/train.json", bytes.NewReader(forged)); err != nil {
			t.Fatal(err)
		}
		target := o.Target
		target.Store = clone
		if _, err := Lineage(t.Context(), LineageOptions{Target: target}); code(err) != exitcode.Integrity || !strings.Contains(err.Error(), "the manifest says") {
			t.Errorf("error %v", err)
		}
	})
	if _, err := Lineage(t.Context(), LineageOptions{Target: o.Target, Ref: aliasOf(t, s)[:12]}); err != nil {
		t.Errorf("by its first digits: %v", err)
	}
	if _, err := Lineage(t.Context(), LineageOptions{Target: o.Target, Ref: "staging"}); code(err) != exitcode.BadInput {
		t.Errorf("no such alias: %v", err)
	}
	if _, err := Lineage(t.Context(), LineageOptions{}); code(err) != exitcode.Usage {
		t.Errorf("neither store nor run: %v", err)
	}
}
