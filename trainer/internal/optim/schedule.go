package optim

import "math"

// Schedule is linear warm-up followed by cosine decay.
type Schedule struct {
	Peak   float64 // learning rate at the end of warm-up
	Min    float64 // learning rate at the last step
	Warmup int     // steps of warm-up
	Total  int     // steps in all
}

// Rate returns the learning rate of a step, counted from 0.
func (s Schedule) Rate(step int) float64 {
	if step < s.Warmup {
		return s.Peak * float64(step+1) / float64(s.Warmup)
	}
	if step >= s.Total {
		return s.Min
	}
	progress := float64(step-s.Warmup) / float64(max(1, s.Total-s.Warmup))
	return s.Min + (s.Peak-s.Min)*(1+math.Cos(math.Pi*progress))/2
}
