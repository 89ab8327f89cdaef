package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A chart's drawing area in SVG units; labels have the margins.
const (
	chartWidth  = 720.0
	chartHeight = 290.0
	marginLeft  = 56.0
	marginRight = 16.0
	marginTop   = 12.0
	marginBelow = 44.0
	maxPoints   = 600 // more than the pixels of a line would not show
)

// lineChart is what the template draws.
type lineChart struct {
	Title, XLabel  string
	Width, Height  float64
	Left, Right    float64
	Top, Bottom    float64
	Lines          []line
	XTicks, YTicks []tick
}

type line struct {
	Name   string
	Class  string
	Points string // "x,y x,y", numbers only
}

type tick struct {
	At    float64
	Label string
}

type point struct{ x, y float64 }

// series is one named line; points that are not finite are left out.
type series struct {
	name, class string
	points      []point
}

// newLineChart scales the series into a chart, or returns nil when there is
// nothing to draw.
func newLineChart(title, xLabel string, all []series) *lineChart {
	lox, hix, loy, hiy := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for i := range all {
		all[i].points = thin(finitePoints(all[i].points))
		for _, p := range all[i].points {
			lox, hix = min(lox, p.x), max(hix, p.x)
			loy, hiy = min(loy, p.y), max(hiy, p.y)
		}
	}
	if lox > hix {
		return nil
	}
	if hix == lox {
		hix = lox + 1
	}
	if hiy == loy {
		loy, hiy = loy-0.5, hiy+0.5
	}
	c := &lineChart{
		Title: title, XLabel: xLabel, Width: chartWidth, Height: chartHeight,
		Left: marginLeft, Right: chartWidth - marginRight, Top: marginTop, Bottom: chartHeight - marginBelow,
	}
	toX := func(x float64) float64 { return c.Left + (x-lox)/(hix-lox)*(c.Right-c.Left) }
	toY := func(y float64) float64 { return c.Bottom - (y-loy)/(hiy-loy)*(c.Bottom-c.Top) }
	for _, s := range all {
		if len(s.points) == 0 {
			continue
		}
		parts := make([]string, len(s.points))
		for i, p := range s.points {
			parts[i] = fmt.Sprintf("%.1f,%.1f", toX(p.x), toY(p.y))
		}
		c.Lines = append(c.Lines, line{s.name, s.class, strings.Join(parts, " ")})
	}
	for _, v := range ticks(lox, hix, 6) {
		c.XTicks = append(c.XTicks, tick{round1(toX(v)), trim(v)})
	}
	for _, v := range ticks(loy, hiy, 5) {
		c.YTicks = append(c.YTicks, tick{round1(toY(v)), trim(v)})
	}
	return c
}

func finitePoints(ps []point) []point {
	out := make([]point, 0, len(ps))
	for _, p := range ps {
		if s := p.x + p.y; !math.IsNaN(s) && !math.IsInf(s, 0) {
			out = append(out, p)
		}
	}
	return out
}

// thin keeps at most maxPoints points, the first and the last among them.
func thin(ps []point) []point {
	if len(ps) <= maxPoints {
		return ps
	}
	out := make([]point, maxPoints)
	for i := range out {
		out[i] = ps[i*(len(ps)-1)/(maxPoints-1)]
	}
	return out
}

// ticks returns round values inside [lo, hi], about n of them, 1, 2 or 5 times a
// power of ten apart.
func ticks(lo, hi float64, n int) []float64 {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*m) <= float64(n) {
			step *= m
			break
		}
	}
	var out []float64
	for i := math.Ceil(lo / step); i*step <= hi && len(out) < 2*n+2; i++ {
		out = append(out, i*step)
	}
	return out
}

func trim(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func round1(v float64) float64 { return math.Round(v*10) / 10 }

// bar is one row of a bar chart, drawn by the page's style: Percent of the
// widest, and where on it the limit lies.
type bar struct {
	Name    string
	Percent float64 // of the row's width, 0 to 100
	Limit   float64 // likewise; below 0 for none
	Label   string
	Bad     bool
}

// scaleBars turns values into widths. limits may be nil.
func scaleBars(names []string, values, limits []float64, label func(i int) string) []bar {
	widest := 0.0
	for i, v := range values {
		widest = max(widest, v)
		if limits != nil {
			widest = max(widest, limits[i])
		}
	}
	out := make([]bar, len(values))
	for i, v := range values {
		b := bar{Name: names[i], Label: label(i), Limit: -1}
		if widest > 0 {
			b.Percent = round1(100 * max(v, 0) / widest)
			if limits != nil {
				b.Limit = round1(100 * limits[i] / widest)
			}
		}
		b.Bad = limits != nil && v > limits[i]
		out[i] = b
	}
	return out
}
