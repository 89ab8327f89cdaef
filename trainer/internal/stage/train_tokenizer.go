package stage

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// checkTokenizer compares the tokens of the data with those that the model to go
// on from was trained on. Other tokens of the same number would train without a
// complaint, on nonsense. A model directory without a tokenizer cannot be checked.
func (t *training) checkTokenizer() error {
	o := &t.opts
	theirs, err := bpe.Load(o.From)
	if errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("no tokenizer beside the model to go on from: its tokens are taken to be those of the data", "from", o.From)
		return nil
	}
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "from: %w", err)
	}
	ours, err := bpe.Load(o.RunDir)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "train: %w", err)
	}
	for id := range int32(ours.VocabSize()) {
		a, _ := ours.Token(id)
		b, _ := theirs.Token(id)
		if !bytes.Equal(a, b) {
			return exitcode.Errorf(exitcode.BadInput, "%s: token %d is %q, in %s it is %q: prepare the data with the model's tokenizer",
				filepath.Join(o.RunDir, tokenizerFile), id, a, o.From, b)
		}
	}
	return nil
}
