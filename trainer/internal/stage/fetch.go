package stage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// StoreInput marks an input that is a key, or the beginning of keys, of the store.
const StoreInput = "store:"

// Fetched are inputs that lie on this machine.
type Fetched struct {
	Inputs  []string          // in the order asked for, with local paths
	Origins map[string]string // URL of each downloaded file by local path
	tmp     *scratch
	made    string // run directory that was made for it
}

// FetchInputs downloads those inputs that begin with StoreInput into a folder of
// the run directory, which is on the volume that is large enough, each verified,
// in constant memory. Remove it with Close.
//
// A key stands for its object, or else for the folder of its name, or else for
// all keys that begin with it.
func FetchInputs(ctx context.Context, s store.Store, inputs []string, runDir string) (*Fetched, error) {
	f := &Fetched{Origins: map[string]string{}}
	for _, in := range inputs {
		key, fromStore := strings.CutPrefix(in, StoreInput)
		if !fromStore {
			f.Inputs = append(f.Inputs, in)
			continue
		}
		local, err := f.fetch(ctx, s, key, runDir, nil)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.Inputs = append(f.Inputs, local)
	}
	return f, nil
}

// Tokenizer downloads a tokenizer that begins with StoreInput: a tokenizer.json, or
// those files of a model's folder that make one. Any other is returned as it is.
func (f *Fetched) Tokenizer(ctx context.Context, s store.Store, where, runDir string) (string, error) {
	key, fromStore := strings.CutPrefix(where, StoreInput)
	if !fromStore {
		return where, nil
	}
	return f.fetch(ctx, s, key, runDir, []string{bpe.TokenizerFile, bpe.VocabFile, bpe.MergesFile})
}

// fetch downloads what a key stands for; of a folder only the files called so, unless
// names is empty.
func (f *Fetched) fetch(ctx context.Context, s store.Store, key, runDir string, names []string) (string, error) {
	if s == nil {
		return "", exitcode.Errorf(exitcode.Usage, "input %s%s: no store to read it from: set --store", StoreInput, key)
	}
	infos, err := s.List(ctx, key)
	if err != nil {
		return "", fromStore("input", err)
	}
	infos = called(chosen(infos, key), key, names)
	if len(infos) == 0 {
		return "", exitcode.Errorf(exitcode.BadInput, "input %s%s: nothing of use in %s begins with it", StoreInput, key, s.URL())
	}
	if err := f.folder(runDir); err != nil {
		return "", err
	}
	// A folder of its own for each input, called like the input: names of
	// documents must not depend on where files are put.
	root, err := os.MkdirTemp(f.tmp.dir, "")
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
	f.tmp.remove()
	if f.made != "" {
		_ = os.Remove(f.made) // unless something was prepared in it
	}
}

// folder makes the folder for what is downloaded, once.
func (f *Fetched) folder(runDir string) error {
	if f.tmp != nil {
		return nil
	}
	if runDir == "" {
		return errNoRunDir()
	}
	if _, err := os.Stat(runDir); errors.Is(err, fs.ErrNotExist) {
		f.made = runDir
	}
	if err := atomicfile.MkdirAll(runDir); err != nil {
		return exitcode.Errorf(exitcode.IO, "input: %w", err)
	}
	var err error
	if f.tmp, err = newScratch(runDir, inputsTemp); err != nil {
		return exitcode.Errorf(exitcode.IO, "input: %w", err)
	}
	return nil
}

// called takes those files of a folder that have one of these names.
func called(infos []store.Info, key string, names []string) []store.Info {
	if len(names) == 0 || len(infos) == 1 && infos[0].Key == key {
		return infos
	}
	return slices.DeleteFunc(slices.Clone(infos), func(i store.Info) bool {
		return !slices.Contains(names, strings.Trim(strings.TrimPrefix(i.Key, key), "/"))
	})
}

// chosen takes from all keys that begin with key those that it stands for: files
// of two folders must not get one name.
func chosen(infos []store.Info, key string) []store.Info {
	var folder []store.Info
	for _, info := range infos {
		if info.Key == key {
			return []store.Info{info}
		}
		if strings.HasPrefix(info.Key, strings.TrimSuffix(key, "/")+"/") {
			folder = append(folder, info)
		}
	}
	if len(folder) > 0 {
		return folder
	}
	return infos
}
