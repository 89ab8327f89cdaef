package evaluate

import (
	"math"
	"testing"
)

// The values are those of the printed table of Student's t (two-sided 0.95 and
// 0.99), as in any textbook.
func TestStudentTAgainstTheTable(t *testing.T) {
	for _, c := range []struct {
		confidence float64
		dof        int
		want       float64
	}{
		{0.95, 1, 12.706}, {0.95, 2, 4.303}, {0.95, 3, 3.182}, {0.95, 4, 2.776},
		{0.95, 5, 2.571}, {0.95, 10, 2.228}, {0.95, 29, 2.045}, {0.95, 30, 2.042},
		{0.95, 60, 2.000}, {0.95, 120, 1.980}, {0.95, 5_000_000, 1.960},
		{0.99, 1, 63.657}, {0.99, 9, 3.250}, {0.99, 10, 3.169},
	} {
		if got := StudentT(c.confidence, c.dof); math.Abs(got-c.want) > 0.0006 {
			t.Errorf("StudentT(%v, %d) = %.4f, want %.3f", c.confidence, c.dof, got, c.want)
		}
	}
}

// Two cases have closed forms: dof 1 is the Cauchy distribution, and dof 2 has
// t = c*sqrt(2/(1-c^2)) for confidence c.
func TestStudentTClosedForms(t *testing.T) {
	for _, c := range []float64{0.5, 0.9, 0.95, 0.999} {
		if got, want := StudentT(c, 1), math.Tan(math.Pi/2*c); math.Abs(got-want) > 1e-9*want {
			t.Errorf("dof 1, confidence %v: %v, want %v", c, got, want)
		}
		if got, want := StudentT(c, 2), c*math.Sqrt(2/(1-c*c)); math.Abs(got-want) > 1e-9*want {
			t.Errorf("dof 2, confidence %v: %v, want %v", c, got, want)
		}
	}
}

func TestStudentTRefusesWhatHasNoAnswer(t *testing.T) {
	for _, c := range []struct {
		confidence float64
		dof        int
	}{{0.95, 0}, {0.95, -1}, {0, 5}, {1, 5}, {math.NaN(), 5}} {
		if got := StudentT(c.confidence, c.dof); !math.IsNaN(got) {
			t.Errorf("StudentT(%v, %d) = %v, want NaN", c.confidence, c.dof, got)
		}
	}
}
