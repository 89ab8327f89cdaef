package stage

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// StoreInput marks an input that is a key, or the beginning of keys, of the store.
const StoreInput = "store:"

// Fetched are inputs that lie on this machine.
type Fetched struct {
	Inputs  []string          // in the order asked for, with local paths
	Origins map[string]string // URL of each downloaded file by local path
	dir     string
}

// FetchInputs downloads those inputs that begin with StoreInput into a folder
// beside the run directory, each verified, in constant memory. Remove it with
// Close.
func FetchInputs(ctx context.Context, s store.Store, inputs []string, runDir string) (*Fetched, error) {
	f := &Fetched{Origins: map[string]string{}}
	for _, in := range inputs {
		key, fromStore := strings.CutPrefix(in, StoreInput)
		if !fromStore {
			f.Inputs = append(f.Inputs, in)
			continue
		}
		local, err := f.fetch(ctx, s, key, runDir)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.Inputs = append(f.Inputs, local)
	}
	return f, nil
}

func (f *Fetched) fetch(ctx context.Context, s store.Store, key, runDir string) (string, error) {
	if s == nil {
		return "", exitcode.Errorf(exitcode.Usage, "input %s%s: no store to read it from: set --store", StoreInput, key)
	}
	infos, err := s.List(ctx, key)
	if err != nil {
		return "", fromStore("input", err)
	}
	if len(infos) == 0 {
		return "", exitcode.Errorf(exitcode.BadInput, "input %s%s: nothing in %s begins with it", StoreInput, key, s.URL())
	}
	if f.dir == "" {
		parent := filepath.Dir(filepath.Clean(runDir))
		if err := atomicfile.MkdirAll(parent); err != nil {
			return "", exitcode.Errorf(exitcode.IO, "input: %w", err)
		}
		if f.dir, err = os.MkdirTemp(parent, ".inputs-*"); err != nil {
			return "", exitcode.Errorf(exitcode.IO, "input: %w", err)
		}
	}
	// A folder of its own for each input, called like the input: names of
	// documents must not depend on where files are put.
	root, err := os.MkdirTemp(f.dir, "")
	if err != nil {
		return "", exitcode.Errorf(exitcode.IO, "input: %w", err)
	}
	root = filepath.Join(root, path.Base("/"+strings.TrimSuffix(key, "/")))
	for _, info := range infos {
		to := root
		if rest := strings.Trim(strings.TrimPrefix(info.Key, key), "/"); info.Key != key {
			to = filepath.Join(root, filepath.FromSlash(rest))
		}
		if err := atomicfile.MkdirAll(filepath.Dir(to)); err != nil {
			return "", exitcode.Errorf(exitcode.IO, "input: %w", err)
		}
		if _, err := store.Download(ctx, s, info.Key, to); err != nil {
			return "", fromStore("input", err)
		}
		f.Origins[to] = strings.TrimSuffix(s.URL(), "/") + "/" + info.Key
	}
	return root, nil
}

// Close removes what was downloaded.
func (f *Fetched) Close() {
	if f.dir != "" {
		_ = os.RemoveAll(f.dir) // copies of what the store has
	}
}
