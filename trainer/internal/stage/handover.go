package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Results of Prepare and Train for later steps.
var (
	prepareResults = []string{"documents", "train-tokens", "data-quality"}
	trainResults   = []string{"train-iter", "val-loss", "model-digest", "stop-reason", artifactOutputs}
)

// PrepareWithResults is RecordedPrepare with results for later steps in
// resultsDir, unless that is empty.
func PrepareWithResults(ctx context.Context, r Recording, o PrepareOptions, resultsDir string) (PrepareReport, error) {
	return handOver(resultsDir, prepareResults,
		func() (PrepareReport, error) {
			rep, err := RecordedPrepare(ctx, r, o)
			return rep, r.orDisown(o.RunDir, err)
		},
		func(rep PrepareReport) map[string]string {
			return map[string]string{
				"documents": fmt.Sprint(rep.Data.DocsOut), "train-tokens": fmt.Sprint(rep.Meta.TrainTokens), "data-quality": fmt.Sprint(rep.Quality.Gate),
			}
		})
}

// TrainWithResults is RecordedTrain with results for later steps in resultsDir,
// unless that is empty. They are about the best checkpoint. The target names the
// place that the model gets in the registry once it is promoted, which is what it is
// called as a product of the task.
func TrainWithResults(ctx context.Context, r Recording, o TrainOptions, target Target, resultsDir string) (TrainReport, error) {
	return handOver(resultsDir, trainResults,
		func() (TrainReport, error) {
			rep, err := RecordedTrain(ctx, r, o)
			return rep, r.orDisown(o.RunDir, err)
		},
		func(rep TrainReport) map[string]string {
			return map[string]string{
				"train-iter": fmt.Sprint(rep.BestStep), "val-loss": fmt.Sprintf("%.4f", rep.BestLoss),
				"model-digest": rep.BestDigest, "stop-reason": rep.StopReason,
				artifactOutputs: artifact(target.location(rep.BestDigest), rep.BestDigest),
			}
		})
}

// BeginPrepareResults writes empty results, for what fails before the stage begins.
func BeginPrepareResults(dir string) error { return beginResults(dir, prepareResults) }

// BeginTrainResults writes empty results, for what fails before the stage begins.
func BeginTrainResults(dir string) error { return beginResults(dir, trainResults) }

// BeginEvaluateResults writes empty results, for what fails before the stage begins.
func BeginEvaluateResults(dir string) error { return beginResults(dir, evaluateResults) }

// BeginPromoteResults writes empty results, for what fails before the stage begins.
func BeginPromoteResults(dir string) error { return beginResults(dir, promoteResults) }

func beginResults(dir string, declared []string) error {
	results, err := declare(dir, declared)
	if err != nil {
		return err
	}
	return results.Write()
}

// declare declares results. That of a product is an object from the beginning.
func declare(dir string, declared []string) (*Results, error) {
	results, err := NewResults(dir, declared...)
	if err == nil && slices.Contains(declared, artifactOutputs) {
		err = results.Set(artifactOutputs, artifact("", ""))
	}
	return results, err
}

// handOver runs a stage and writes its results on every way out: empty ones
// where it failed.
func handOver[T any](dir string, declared []string, run func() (T, error), values func(T) map[string]string) (T, error) {
	var none T
	results, err := declare(dir, declared)
	if err != nil {
		return none, err
	}
	rep, err := run()
	if err == nil {
		err = results.setAll(values(rep))
	}
	if writeErr := results.Write(); err == nil {
		err = writeErr
	}
	return rep, err
}

// orDisown gives the run directory back when the stage failed or was stopped: a
// cancelled pipeline runs nothing that could, and whoever goes on in the directory,
// a retry above all, takes it again.
func (r Recording) orDisown(dir string, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, Disown(dir, r.Owner))
}
