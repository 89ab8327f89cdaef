package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// ErrHistory is wrapped by errors about a loss history.
var ErrHistory = errors.New("invalid loss history")

// maxLosses bounds what is read: a row a step.
const maxLosses = 5_000_000

// ReadLosses reads a loss history: CSV with a header that names the columns
// step, train_loss and val_loss. An empty field is no value.
func ReadLosses(r io.Reader) ([]Loss, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	header, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrHistory, err)
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	var at [3]int
	for i, name := range []string{"step", "train_loss", "val_loss"} {
		var ok bool
		if at[i], ok = column[name]; !ok {
			return nil, fmt.Errorf("%w: no column %s", ErrHistory, name)
		}
	}
	var out []Loss
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrHistory, err)
		}
		if len(out) == maxLosses {
			return nil, fmt.Errorf("%w: more than %d rows", ErrHistory, maxLosses)
		}
		var l Loss
		if l.Step, err = strconv.Atoi(row[at[0]]); err != nil {
			return nil, fmt.Errorf("%w: step: %w", ErrHistory, err)
		}
		for i, to := range []*float64{&l.Train, &l.Val} {
			field := row[at[1+i]]
			if field == "" {
				*to = math.NaN()
				continue
			}
			if *to, err = strconv.ParseFloat(field, 64); err != nil {
				return nil, fmt.Errorf("%w: step %d: %w", ErrHistory, l.Step, err)
			}
		}
		out = append(out, l)
	}
}
