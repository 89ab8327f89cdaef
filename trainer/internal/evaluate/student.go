package evaluate

import "math"

// maxDOF bounds the work: beyond it t differs from the normal quantile in the
// sixth digit only.
const maxDOF = 1_000_000

// StudentT returns the two-sided quantile of Student's t distribution: the t
// with P(|T| <= t) = confidence at dof degrees of freedom. It is NaN for dof
// below 1 or a confidence outside (0, 1).
func StudentT(confidence float64, dof int) float64 {
	if dof < 1 || !(confidence > 0 && confidence < 1) {
		return math.NaN()
	}
	dof = min(dof, maxDOF)
	// With theta = atan(t/sqrt(dof)), P(|T| <= t) rises from 0 to 1 as theta
	// goes from 0 to pi/2.
	lo, hi := 0.0, math.Pi/2
	for range 60 {
		mid := (lo + hi) / 2
		if withinAngle(mid, dof) < confidence {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Sqrt(float64(dof)) * math.Tan((lo+hi)/2)
}

// withinAngle returns P(|T| <= sqrt(dof)*tan(theta)) by the finite series for
// whole degrees of freedom (Abramowitz and Stegun, Handbook of Mathematical
// Functions, 26.7.3 for odd and 26.7.4 for even dof).
func withinAngle(theta float64, dof int) float64 {
	sin, cos := math.Sin(theta), math.Cos(theta)
	cos2 := cos * cos
	var sum, term float64
	if dof%2 == 1 {
		term = cos
		for k := 3; k <= dof; k += 2 { // ends at cos^(dof-2)
			sum += term
			term *= cos2 * float64(k-1) / float64(k)
		}
		return 2 / math.Pi * (theta + sin*sum)
	}
	term = 1
	for k := 2; k <= dof; k += 2 {
		sum += term
		term *= cos2 * float64(k-1) / float64(k)
	}
	return sin * sum
}
