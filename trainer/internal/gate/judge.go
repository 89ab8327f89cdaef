package gate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// Judge applies every rule and returns all outcomes: none is left out because
// another one blocked already.
func Judge(p Policy, e Evidence) []Result {
	var rs []Result
	rs = append(rs, identity(e)...)
	rs = append(rs, thresholds(p, e)...)
	rs = append(rs, certainty(p, e)...)
	rs = append(rs, regression(p, e))
	rs = append(rs, training(p, e)...)
	rs = append(rs, quality(p, e), image(p, e))
	rs = append(rs, files(p, e)...)
	return rs
}

// identity asks that the report is about this candidate and these data.
func identity(e Evidence) []Result {
	if e.EvalErr != nil || e.Eval == nil {
		return []Result{blocked("evaluation", "there is no evaluation to judge by: %s", why(e.EvalErr))}
	}
	rs := []Result{same("candidate_digest", "the candidate", e.Candidate, e.Eval.Candidate.Digest)}
	rs = append(rs,
		same("val_data_digest", "the validation split", e.Val, e.Eval.Splits.Val.SHA256),
		same("test_data_digest", "the test split", e.Test, e.Eval.Splits.Test.SHA256))
	return rs
}

func same(rule, what string, now Digest, evaluated string) Result {
	switch {
	case now.Err != nil || now.SHA256 == "":
		return blocked(rule, "%s has no digest: %s", what, why(now.Err))
	case now.SHA256 != evaluated:
		return blocked(rule, "%s is %s, but %s was evaluated: evaluate again", what, Short(now.SHA256), Short(evaluated))
	}
	return passed(rule, "%s %s is what was evaluated", what, Short(now.SHA256))
}

func thresholds(p Policy, e Evidence) []Result {
	var val, test evaluate.SplitReport
	if e.Eval != nil {
		val, test = e.Eval.Splits.Val, e.Eval.Splits.Test
	}
	var rs []Result
	for _, t := range []struct {
		rule, what string
		limit      *float64
		estimate   evaluate.Estimate
	}{
		{"max_val_loss", "validation loss", p.MaxValLoss, val.Loss},
		{"max_test_loss", "test loss", p.MaxTestLoss, test.Loss},
		{"max_perplexity", "test perplexity", p.MaxPerplexity, test.Perplexity},
		{"max_bits_per_byte", "test bits per byte", p.MaxBitsPerByte, test.BitsPerByte},
	} {
		switch {
		case t.limit == nil:
		case e.Eval == nil:
			rs = append(rs, blocked(t.rule, "%s was not measured", t.what))
		default:
			rs = append(rs, atMost(t.rule, t.what, t.estimate, *t.limit, p.WithinNoise))
		}
	}
	return rs
}

// certainty asks that the figures are as exact as the policy wants.
func certainty(p Policy, e Evidence) []Result {
	if e.Eval == nil {
		return nil // blocked by identity
	}
	var rs []Result
	switch {
	case e.Eval.Mode == evaluate.Full:
		rs = append(rs, passed("evaluation_mode", "the whole held-out splits were evaluated"))
	case e.Eval.Mode == evaluate.Sampled && p.AllowSampled:
		rs = append(rs, passed("evaluation_mode", "a sample was evaluated, which the policy allows"))
	default:
		rs = append(rs, blocked("evaluation_mode", "the evaluation is %s: evaluate the whole splits, or set allow_sampled", e.Eval.Mode))
	}
	for _, s := range []struct {
		name string
		evaluate.SplitReport
	}{{"val", e.Eval.Splits.Val}, {"test", e.Eval.Splits.Test}} {
		if s.DocumentsInSplit < p.MinDocuments {
			rs = append(rs, blocked(s.name+"_documents", "the %s split has %d documents, the policy asks for %d: choose another document separator, or set min_documents", s.name, s.DocumentsInSplit, p.MinDocuments))
		}
		if limit := p.MaxStandardError; limit != nil {
			rs = append(rs, standardError(s.name, s.Loss, *limit))
		}
	}
	return rs
}

func standardError(split string, loss evaluate.Estimate, limit float64) Result {
	r := Result{Rule: split + "_standard_error", Threshold: &limit, Verdict: Blocked, Blocks: true}
	if loss.StandardError == nil || !finite(*loss.StandardError) {
		r.Sentence = fmt.Sprintf("the %s loss has no standard error", split)
		return r
	}
	r.Value = loss.StandardError
	if *r.Value > limit {
		r.Sentence = fmt.Sprintf("standard error %s of the %s loss is more than %s: evaluate more documents", num(*r.Value), split, num(limit))
		return r
	}
	r.Verdict, r.Blocks = Pass, false
	r.Sentence = fmt.Sprintf("standard error %s of the %s loss is at most %s", num(*r.Value), split, num(limit))
	return r
}

// regression compares with the promoted model. What is promoted now must be what
// was compared with, and only the store can say that there is nothing promoted.
func regression(p Policy, e Evidence) Result {
	const rule = "max_regression"
	none := errors.Is(e.Promoted.Err, store.ErrNotFound)
	switch {
	case e.Promoted.Err != nil && !none, e.Promoted.Err == nil && e.Promoted.SHA256 == "":
		return blocked(rule, "the promoted model is not known: %s", why(e.Promoted.Err))
	case e.Eval == nil:
		return blocked(rule, "nothing was compared with the promoted model")
	case none && e.Eval.BaselineState == evaluate.BaselineCompared:
		return blocked(rule, "compared with %s, but nothing is promoted now: evaluate again", Short(e.Eval.Baseline.Digest))
	case none:
		return passed(rule, "nothing is promoted yet, so there is nothing to be worse than")
	case e.Eval.BaselineState == evaluate.BaselineUnasked && p.MaxRegression == nil:
		return passed(rule, "the policy asks for no comparison with the promoted %s", Short(e.Promoted.SHA256))
	case e.Eval.BaselineState != evaluate.BaselineCompared:
		return blocked(rule, "%s is promoted, but the evaluation compared with nothing: evaluate again", Short(e.Promoted.SHA256))
	case e.Eval.Baseline.Digest != e.Promoted.SHA256:
		return blocked(rule, "%s is promoted now, but the evaluation compared with %s: evaluate again", Short(e.Promoted.SHA256), Short(e.Eval.Baseline.Digest))
	case p.MaxRegression == nil:
		return passed(rule, "compared with the promoted %s; the policy sets no limit", Short(e.Promoted.SHA256))
	}
	what := fmt.Sprintf("test loss minus that of the promoted %s, in %s,", Short(e.Promoted.SHA256), strings.ReplaceAll(e.Eval.Baseline.Unit, "_", " "))
	return atMost(rule, what, e.Eval.Baseline.Splits.Test.Difference, *p.MaxRegression, p.WithinNoise)
}

func training(p Policy, e Evidence) []Result {
	var rs []Result
	t := e.Training
	switch {
	case e.TrainingErr != nil || t == nil:
		rs = append(rs, blocked("training_complete", "it is not known whether training reached its end: %s", why(e.TrainingErr)))
	case t.Total < 1 || t.Step < 0:
		rs = append(rs, blocked("training_complete", "training says step %d of %d, which cannot be", t.Step, t.Total))
	case t.Step >= t.Total:
		rs = append(rs, passed("training_complete", "training reached step %d of %d", t.Step, t.Total))
	case t.StopReason != "" && p.AllowEarlyStop:
		rs = append(rs, passed("training_complete", "training was stopped at step %d of %d (%s), which the policy allows", t.Step, t.Total, t.StopReason))
	case t.StopReason != "":
		rs = append(rs, blocked("training_complete", "training was stopped at step %d of %d (%s): finish it, or set allow_early_stop", t.Step, t.Total, t.StopReason))
	default:
		rs = append(rs, blocked("training_complete", "training ended at step %d of %d: resume it", t.Step, t.Total))
	}
	if least := p.MinTrainIter; least != nil {
		switch {
		case e.Eval == nil:
			rs = append(rs, blocked("min_train_iter", "the candidate's step is not known"))
		case e.Eval.TrainIter < *least:
			rs = append(rs, blocked("min_train_iter", "the candidate is of step %d, the policy asks for %d", e.Eval.TrainIter, *least))
		default:
			rs = append(rs, passed("min_train_iter", "the candidate is of step %d, at least %d", e.Eval.TrainIter, *least))
		}
	}
	return rs
}

func quality(p Policy, e Evidence) Result {
	const rule = "data_quality"
	q := e.Quality
	switch {
	case !p.RequireDataQuality:
		return passed(rule, "the policy does not ask for the data quality gate")
	case e.QualityErr != nil || q == nil:
		return blocked(rule, "the data quality is not known: %s", why(e.QualityErr))
	case !q.Passed:
		return blocked(rule, "the data quality gate was not passed over %d documents: %s", q.Documents, strings.Join(q.Failing, ", "))
	case q.Documents < 1:
		return blocked(rule, "the data quality report counts %d documents", q.Documents)
	}
	return passed(rule, "the data quality gate was passed over %d documents", q.Documents)
}

func image(p Policy, e Evidence) Result {
	const rule = "code_image"
	if e.Image == "" {
		if p.RequireImage {
			return blocked(rule, "no code image was given: pass its reference by digest")
		}
		return passed(rule, "no code image, which the policy allows")
	}
	if _, err := ImageDigest(e.Image); err != nil {
		return blocked(rule, "%v", err)
	}
	return passed(rule, "%s is pinned by digest", e.Image)
}

func files(p Policy, e Evidence) []Result {
	if len(p.RequiredFiles) == 0 {
		return nil
	}
	var rs []Result
	for _, f := range p.RequiredFiles {
		if err, looked := e.Files[f]; err != nil || !looked {
			rs = append(rs, blocked("required_files", "%s is missing: %s", f, why(err)))
		}
	}
	if len(rs) == 0 {
		rs = append(rs, passed("required_files", "all %d required files are there", len(p.RequiredFiles)))
	}
	return rs
}

func why(err error) string {
	if err == nil {
		return "no reason was given"
	}
	return err.Error()
}

// Short returns the first 12 digits of a digest, the form people compare by eye.
func Short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}
