package stage

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/trainyard/trainyard/trainer/internal/train"
)

const keepSchema = "trainyard.checkpoint/v1"

// keptIndex is the index of a run's checkpoint in the store.
type keptIndex struct {
	Schema string     `json:"schema"`
	Step   int        `json:"step"`
	Place  string     `json:"place"` // a or b
	Files  []keptFile `json:"files"`
}

type keptFile struct {
	Name   string `json:"name"` // relative to the run directory
	SHA256 string `json:"sha256"`
}

func marshalKept(i keptIndex) ([]byte, error) {
	b, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

func parseKept(raw []byte) (keptIndex, error) {
	var i keptIndex
	if err := json.Unmarshal(raw, &i); err != nil {
		return keptIndex{}, err
	}
	return i, checkKept(i)
}

// checkKept refuses an index that would lead files out of their directory.
func checkKept(i keptIndex) error {
	if i.Schema != keepSchema || (i.Place != "a" && i.Place != "b") || i.Step < 0 {
		return fmt.Errorf("schema %q, place %q and step %d are none of a checkpoint", i.Schema, i.Place, i.Step)
	}
	last := false
	for _, f := range i.Files {
		dir, base := path.Split(f.Name)
		known := f.Name == train.HistoryName || slices.Contains([]string{train.BestDir + "/", train.LastDir + "/"}, dir)
		if !known || base == "" || base[0] == '.' || !fs.ValidPath(f.Name) || len(f.SHA256) != 64 {
			return fmt.Errorf("it names a file %.100q, which no checkpoint has", f.Name)
		}
		last = last || f.Name == train.LastDir+"/"+train.RecordName
	}
	if !last {
		return fmt.Errorf("it names no %s/%s", train.LastDir, train.RecordName)
	}
	return nil
}
