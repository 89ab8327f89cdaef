package component

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// batchSize bounds what an interrupted build links again. Several programs are
// given to one go build, since linking one leaves most cores idle.
const batchSize = 6

// batches sorts the programs that dir does not hold yet into batches in which no
// two binaries would get the same name from go build.
func batches(programs []Program, dir string) [][]Program {
	var out [][]Program
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(dir, program.Name)); err == nil {
			continue
		}
		fits := func(batch []Program) bool {
			return len(batch) < batchSize && !program.Alone && !batch[0].Alone && !slices.ContainsFunc(batch, func(other Program) bool {
				return other.base() == program.base()
			})
		}
		if i := slices.IndexFunc(out, fits); i >= 0 {
			out[i] = append(out[i], program)
		} else {
			out = append(out, []Program{program})
		}
	}
	return out
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// base is the name that go build gives the program: the last element of its
// import path that is not a major version.
func (p Program) base() string {
	base := path.Base(p.Package)
	if majorVersion.MatchString(base) {
		base = path.Base(path.Dir(p.Package))
	}
	return base
}
