package main

import (
	"fmt"
	"io"
	"slices"
)

// median returns the middle of values, the mean of the middle two when even,
// and 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// summary is one contender on one workload over all rounds.
type summary struct {
	medianMS, lowMS, highMS float64 // of the rounds' medians
	peakMiB                 float64 // largest of any round
	loss                    float64 // after the last step
	peakGFLOPS              float64 // median over rounds, 0 where not measured
	tuning                  string
	rounds                  int
}

func summarize(all []stepResult, contender, workload string) summary {
	var s summary
	var ms, peaks []float64
	for _, r := range all {
		if r.Contender != contender || r.Workload != workload {
			continue
		}
		ms = append(ms, r.MedianMS)
		s.peakMiB = max(s.peakMiB, float64(r.PeakRSSBytes)/(1<<20))
		s.tuning, s.loss = r.Tuning, r.LastLoss
		if r.PeakGFLOPS > 0 {
			peaks = append(peaks, r.PeakGFLOPS)
		}
	}
	if s.rounds = len(ms); s.rounds > 0 {
		s.medianMS, s.lowMS, s.highMS = median(ms), slices.Min(ms), slices.Max(ms)
		s.peakGFLOPS = median(peaks)
	}
	return s
}

// printSteps prints one table for each workload. The last column compares with
// the first runner: how many times as long a step takes. The loss shows that the
// contenders do the same: one random batch, learnt from like initial weights.
func printSteps(out io.Writer, o options, ws []workload, runners []stepRunner, all []stepResult) {
	for _, w := range ws {
		fmt.Fprintf(out, "\n### %s: %s\n\nMedian of %d runs, each the median of %d steps after %d to warm up.\n\n", w.Name, w.About, o.rounds, w.Steps, w.Warmup)
		fmt.Fprintln(out, "| contender | ms/step | lowest–highest | tokens/s | GFLOP/s | peak MiB | last loss | times ours |")
		fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|")
		ours := summarize(all, runners[0].name, w.Name)
		tuned := ""
		for _, r := range runners {
			s := summarize(all, r.name, w.Name)
			if s.rounds == 0 {
				continue
			}
			fmt.Fprintf(out, "| %s | %.1f | %.1f–%.1f | %.0f | %.0f | %.0f | %.2f | %.2f |\n", r.name, s.medianMS, s.lowMS, s.highMS,
				float64(w.tokensPerStep())/s.medianMS*1e3, w.gflop()/s.medianMS*1e3, s.peakMiB, s.loss, s.medianMS/ours.medianMS)
			if s.tuning != "" {
				tuned = fmt.Sprintf("\n%s ran with: %s.\n", r.name, s.tuning)
			}
		}
		fmt.Fprint(out, tuned)
		if ours.peakGFLOPS > 0 {
			fmt.Fprintf(out, "\n%s reaches %.0f %% of the FMA peak measured beside it, %.0f GFLOP/s.\n", runners[0].name,
				100*w.gflop()/ours.medianMS*1e3/ours.peakGFLOPS, ours.peakGFLOPS)
		}
	}
}
