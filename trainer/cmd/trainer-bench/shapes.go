package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// shape is one line of bench/shapes.txt: C (M,N) = A B over K, with A or B
// stored transposed as form says.
type shape struct {
	name, form string // form is NN, NT or TN
	m, n, k    int
}

func readShapes(path string) ([]shape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []shape
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var s shape
		if _, err := fmt.Sscan(line, &s.name, &s.form, &s.m, &s.n, &s.k); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if s.form != "NN" && s.form != "NT" && s.form != "TN" || min(s.m, s.n, s.k) < 1 {
			return nil, fmt.Errorf("%s:%d: want a name, NN, NT or TN, and three positive sizes: %q", path, number, line)
		}
		all = append(all, s)
	}
	return all, lines.Err()
}
