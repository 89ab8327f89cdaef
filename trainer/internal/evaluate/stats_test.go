package evaluate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// Worked by hand. Documents (10 nats, 4 tokens), (30, 8), (20, 8): the ratio is
// 60/20 = 3, the residuals 10-12, 30-24, 20-24 = -2, 6, -4, their squares sum to
// 56, so se^2 = 3/2*56/400 = 0.21. t at 2 degrees of freedom is 4.302652730.
func TestLossPerTokenByHand(t *testing.T) {
	docs := []Sums{{10, 4, 12}, {30, 8, 20}, {20, 8, 28}}
	e, err := LossPerToken(docs)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "value", e.Value, 3, 0)
	near(t, "standard error", *e.StandardError, math.Sqrt(0.21), 1e-15)
	near(t, "low end", e.Interval[0], 3-4.302652729911275*math.Sqrt(0.21), 1e-9)
	near(t, "high end", e.Interval[1], 3+4.302652729911275*math.Sqrt(0.21), 1e-9)

	b, err := BitsPerByte(docs)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "bits per byte", b.Value, 60/math.Ln2/60, 1e-15)
}

func TestPerplexityIsExpOfLoss(t *testing.T) {
	p := Perplexity(Estimate{Value: 7.1313, Interval: &[2]float64{7, 7.3}})
	near(t, "perplexity", p.Value, math.Exp(7.1313), 0)
	near(t, "low", p.Interval[0], math.Exp(7), 0)
	near(t, "high", p.Interval[1], math.Exp(7.3), 0)
	if p.StandardError != nil {
		t.Error("perplexity has a standard error, want none")
	}
}

// Documents of equal length make the ratio the plain mean, whose standard error
// is the textbook s/sqrt(n).
func TestEqualLengthsGiveTheStandardErrorOfTheMean(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 50
	docs := make([]Sums, n)
	var mean float64
	x := make([]float64, n)
	for i := range docs {
		x[i] = 5 + r.NormFloat64()
		docs[i] = Sums{Loss: 7 * x[i], Tokens: 7, Bytes: 7}
		mean += x[i] / n
	}
	var ss float64
	for _, v := range x {
		ss += (v - mean) * (v - mean)
	}
	e, err := LossPerToken(docs)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", e.Value, mean, 1e-12)
	near(t, "standard error", *e.StandardError, math.Sqrt(ss/(n-1)/n), 1e-12)
}

// An independent way to the same figure: the bootstrap over documents.
func TestStandardErrorAgreesWithTheBootstrap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	docs := make([]Sums, 200)
	for i := range docs {
		n := int64(5 + r.IntN(400)) // lengths differ widely, and long ones are easier
		docs[i] = Sums{Loss: float64(n)*(4-float64(n)/400) + 30*r.NormFloat64(), Tokens: n, Bytes: 3 * n}
	}
	e, err := LossPerToken(docs)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 4000
	var sum, sum2 float64
	for range rounds {
		var l, n float64
		for range docs {
			d := docs[r.IntN(len(docs))]
			l += d.Loss
			n += float64(d.Tokens)
		}
		sum += l / n
		sum2 += l / n * l / n
	}
	boot := math.Sqrt(sum2/rounds - sum/rounds*sum/rounds)
	if ratio := *e.StandardError / boot; ratio < 0.93 || ratio > 1.07 {
		t.Errorf("standard error %v, bootstrap %v", *e.StandardError, boot)
	}
}

// Of many samples from one population, about 95 % must have an interval that
// holds the true ratio.
func TestIntervalCoversTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rounds, truth = 2000, 3.0
	covered := 0
	for range rounds {
		docs := make([]Sums, 20)
		for i := range docs {
			n := int64(20 + r.IntN(20))
			docs[i] = Sums{Loss: float64(n)*truth + 10*r.NormFloat64(), Tokens: n}
		}
		e, err := LossPerToken(docs)
		if err != nil {
			t.Fatal(err)
		}
		if e.Interval[0] <= truth && truth <= e.Interval[1] {
			covered++
		}
	}
	if share := float64(covered) / rounds; share < 0.93 || share > 0.97 {
		t.Errorf("%.1f %% of the intervals hold the truth, want about 95", 100*share)
	}
}

func TestOneDocumentHasNoStandardError(t *testing.T) {
	e, err := LossPerToken([]Sums{{10, 4, 1}})
	if err != nil || e.Value != 2.5 || e.StandardError != nil || e.Interval != nil {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		docs []Sums
		want error
	}{
		"no document":        {nil, ErrNothing},
		"no token":           {[]Sums{{0, 0, 0}, {0, 0, 0}}, ErrNothing},
		"loss is NaN":        {[]Sums{{1, 1, 1}, {math.NaN(), 1, 1}}, ErrNotFinite},
		"loss is infinite":   {[]Sums{{math.Inf(1), 1, 1}, {1, 1, 1}}, ErrNotFinite},
		"loss is minus inf.": {[]Sums{{math.Inf(-1), 1, 1}, {1, 1, 1}}, ErrNotFinite},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := LossPerToken(c.docs); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// Pairing is the point: two models that differ by 0.01 on every document are
// told apart although documents differ from each other by far more.
func TestComparePairsDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var a, b []Sums
	for range 40 {
		n := int64(50 + r.IntN(50))
		hard := 3 + 2*r.Float64()
		noise := 0.001 * r.NormFloat64()
		b = append(b, Sums{float64(n) * hard, n, 2 * n})
		a = append(a, Sums{float64(n) * (hard - 0.01 + noise), n, 2 * n})
	}
	d, err := Compare(a, b, NatsPerToken)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "difference", d.Value, -0.01, 0.001)
	if d.Interval[1] >= 0 {
		t.Errorf("interval %v holds 0", *d.Interval)
	}
	alone, _ := LossPerToken(a)
	if *alone.StandardError < 20**d.StandardError {
		t.Errorf("standard error %v alone, %v paired: pairing gained too little", *alone.StandardError, *d.StandardError)
	}
	bits, err := Compare(a, b, BitsPerByteU)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "difference in bits", bits.Value, d.Value/2/math.Ln2, 1e-12)
}

func TestCompareWithItselfIsExactlyZero(t *testing.T) {
	docs := []Sums{{10, 4, 12}, {30, 8, 20}, {20, 8, 28}}
	d, err := Compare(docs, docs, NatsPerToken)
	if err != nil || d.Value != 0 || *d.StandardError != 0 || *d.Interval != [2]float64{} {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestCompareRefusesOtherDocuments(t *testing.T) {
	a := []Sums{{10, 4, 12}, {30, 8, 20}}
	for name, c := range map[string]struct {
		b    []Sums
		unit string
	}{
		"fewer documents":       {a[:1], NatsPerToken},
		"other tokens":          {[]Sums{{10, 4, 12}, {30, 9, 20}}, NatsPerToken},
		"other bytes, in bytes": {[]Sums{{10, 4, 12}, {30, 8, 21}}, BitsPerByteU},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compare(a, c.b, c.unit); !errors.Is(err, ErrNotPaired) {
				t.Errorf("error %v, want ErrNotPaired", err)
			}
		})
	}
	if _, err := Compare(a, []Sums{{10, 9, 12}, {30, 9, 20}}, BitsPerByteU); err != nil {
		t.Errorf("other tokens, same bytes, in bits per byte: %v", err)
	}
	if _, err := Compare(a, a, "furlongs"); err == nil {
		t.Error("unknown unit accepted")
	}
}
