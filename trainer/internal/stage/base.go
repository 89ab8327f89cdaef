package stage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// BaseDir is the copy, in a run directory, of a model of the store that training
// goes on from. It stays: samples compare with it, and a retry needs it again.
const BaseDir = "base"

const baseFile = "base.json" // beside it: where it is from

type baseOrigin struct {
	Schema string `json:"schema"`
	URL    string `json:"url"`
}

const baseSchema = "trainyard.base/v1"

// FetchModel downloads a model that begins with StoreInput, the key of a folder in
// Hugging Face's layout, and returns the directory to go on from and where each of
// its files is from. Any other is a directory already.
func FetchModel(ctx context.Context, s store.Store, from, runDir string) (dir string, origins map[string]string, err error) {
	key, fromTheStore := strings.CutPrefix(from, StoreInput)
	if !fromTheStore {
		return from, nil, nil
	}
	if s == nil {
		return "", nil, exitcode.Errorf(exitcode.Usage, "model %s: no store to read it from: set --store", from)
	}
	if err := checkRun(runDir); err != nil {
		return "", nil, err
	}
	infos, err := s.List(ctx, strings.TrimSuffix(key, "/")+"/")
	if err != nil {
		return "", nil, fromStore("from", err)
	}
	infos = called(infos, key, []string{hf.ConfigFile, hf.WeightsFile, bpe.TokenizerFile, bpe.VocabFile, bpe.MergesFile})
	url := strings.TrimSuffix(s.URL(), "/") + "/" + strings.Trim(key, "/")
	if len(infos) == 0 {
		return "", nil, exitcode.Errorf(exitcode.BadInput, "model %s: no %s and %s below %s", from, hf.ConfigFile, hf.WeightsFile, url)
	}
	dir = filepath.Join(runDir, BaseDir)
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	origins = map[string]string{}
	for _, i := range infos {
		origins[filepath.Join(abs, nameIn(i, key))] = strings.TrimSuffix(s.URL(), "/") + "/" + i.Key
	}
	if same, err := isCopied(ctx, s, infos, key, url, runDir); err != nil || same {
		return dir, origins, err
	}
	return dir, origins, download(ctx, s, infos, key, url, runDir)
}

func nameIn(i store.Info, key string) string {
	return strings.Trim(strings.TrimPrefix(i.Key, key), "/")
}

// isCopied reports whether the copy is that of the folder as it is now.
func isCopied(ctx context.Context, s store.Store, infos []store.Info, key, url, runDir string) (bool, error) {
	o, err := readWith(filepath.Join(runDir, baseFile), fromJSON[baseOrigin])
	if err != nil || o.Schema != baseSchema || o.URL != url {
		return false, nil
	}
	for _, i := range infos {
		local := filepath.Join(runDir, BaseDir, nameIn(i, key))
		file, err := os.Stat(local)
		if err != nil || file.Size() != i.Size {
			return false, nil
		}
		info, err := s.Stat(ctx, i.Key)
		if err != nil {
			return false, fromStore("from", err)
		}
		if info.SHA256 == "" {
			continue // the store does not know
		}
		if sum, err := lineage.HashFile(ctx, local); err != nil || sum != info.SHA256 {
			return false, nil
		}
	}
	return true, nil
}

// download puts a new copy in the place of what was there.
func download(ctx context.Context, s store.Store, infos []store.Info, key, url, runDir string) error {
	tmp, err := newScratch(runDir, baseTemp)
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	defer tmp.remove()
	whole := filepath.Join(tmp.dir, BaseDir)
	if err := atomicfile.MkdirAll(whole); err != nil {
		return exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	for _, i := range infos {
		if _, err := store.Download(ctx, s, i.Key, filepath.Join(whole, nameIn(i, key))); err != nil {
			return fromStore("from", err)
		}
	}
	dir, note := filepath.Join(runDir, BaseDir), filepath.Join(runDir, baseFile)
	// The note goes first and comes last: with it the copy is whole.
	if err := os.Remove(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	if err := os.Rename(whole, dir); err != nil {
		return exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	if err := atomicfile.WriteJSON(note, baseOrigin{baseSchema, url}); err != nil {
		return exitcode.Errorf(exitcode.IO, "from: %w", err)
	}
	return nil
}
