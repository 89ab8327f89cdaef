package stage

import (
	"context"
	"errors"
	"fmt"
)

// Results of Prepare and Train for later steps.
var (
	prepareResults = []string{"documents", "train-tokens", "data-quality"}
	trainResults   = []string{"train-iter", "val-loss", "model-digest", "stop-reason"}
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
// unless that is empty. They are about the best checkpoint.
func TrainWithResults(ctx context.Context, r Recording, o TrainOptions, resultsDir string) (TrainReport, error) {
	return handOver(resultsDir, trainResults,
		func() (TrainReport, error) {
			rep, err := RecordedTrain(ctx, r, o)
			return rep, r.orDisown(o.RunDir, err)
		},
		func(rep TrainReport) map[string]string {
			return map[string]string{
				"train-iter": fmt.Sprint(rep.BestStep), "val-loss": fmt.Sprintf("%.4f", rep.BestLoss),
				"model-digest": rep.BestDigest, "stop-reason": rep.StopReason,
			}
		})
}

// handOver runs a stage and writes its results on every way out: empty ones
// where it failed.
func handOver[T any](dir string, declared []string, run func() (T, error), values func(T) map[string]string) (T, error) {
	results, err := NewResults(dir, declared...)
	if err != nil {
		var none T
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
