package bpe

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// Save writes tokenizer.json, vocab.json and merges.txt into dir, which is made if it is
// not there. tokenizer.json comes last: it is what Load prefers, so that an interrupted
// Save leaves the tokenizer that was there.
func (t *Tokenizer) Save(dir string) error {
	if err := atomicfile.MkdirAll(dir); err != nil {
		return fmt.Errorf("save tokenizer: %w", err)
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{VocabFile, t.SaveVocab},
		{MergesFile, t.SaveMerges},
		{TokenizerFile, t.SaveTokenizerJSON},
	} {
		if err := atomicfile.WriteFile(filepath.Join(dir, file.name), file.write); err != nil {
			return fmt.Errorf("save tokenizer: %w", err)
		}
	}
	return nil
}

// Digest returns the SHA-256 of what SaveTokenizerJSON writes, in hex. Equal tokenizers
// have equal digests, whatever files they came from.
func (t *Tokenizer) Digest() string {
	h := sha256.New()
	if err := t.SaveTokenizerJSON(h); err != nil {
		panic(err) // a hash takes every write
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The parts of a tokenizer.json around its lists, with GPT-2's settings. Merges are in
// the form "a b", which every release of Hugging Face's tokenizers reads.
const (
	jsonBeforeAdded = `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [`
	jsonBeforeVocab = `],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  },
  "post_processor": {
    "type": "ByteLevel",
    "add_prefix_space": true,
    "trim_offsets": false,
    "use_regex": true
  },
  "decoder": {
    "type": "ByteLevel",
    "add_prefix_space": true,
    "trim_offsets": true,
    "use_regex": true
  },
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {`
	jsonBeforeMerges = `},
    "merges": [`
	jsonEnd = `]
  }
}
`
)

// SaveTokenizerJSON writes the tokenizer in the canonical form: for equal tokenizers the
// same bytes. Hugging Face's tokenizers and transformers (GPT2TokenizerFast) load it.
func (t *Tokenizer) SaveTokenizerJSON(w io.Writer) error {
	out := newLister(w)
	out.text(jsonBeforeAdded)
	for _, a := range t.added {
		out.item("    ", fmt.Sprintf(`{
      "id": %d,
      "content": %s,
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": %t
    }`, a.ID, quote(a.Content), a.Special))
	}
	out.end("  ")
	out.text(jsonBeforeVocab)
	for id, name := range t.names() {
		out.item("      ", fmt.Sprintf("%s: %d", quote(name), id))
	}
	out.end("    ")
	out.text(jsonBeforeMerges)
	for _, m := range t.merges {
		out.item("      ", quote(spell(t.tokens[m.left])+" "+spell(t.tokens[m.right])))
	}
	out.end("    ")
	out.text(jsonEnd)
	return out.flush()
}

// SaveVocab writes vocab.json: one line with all tokens in order of id.
func (t *Tokenizer) SaveVocab(w io.Writer) error {
	out := bufio.NewWriter(w)
	sep := "{"
	for id, name := range t.names() {
		fmt.Fprintf(out, "%s%s:%d", sep, quote(name), id) // Flush returns the error
		sep = ","
	}
	out.WriteString("}")
	return out.Flush()
}

// SaveMerges writes merges.txt in order of rank.
func (t *Tokenizer) SaveMerges(w io.Writer) error {
	out := bufio.NewWriter(w)
	out.WriteString("#version: 0.2\n") // Flush returns the error
	for _, m := range t.merges {
		out.WriteString(spell(t.tokens[m.left]) + " " + spell(t.tokens[m.right]) + "\n")
	}
	return out.Flush()
}

// names returns all tokens as files spell them, by id.
func (t *Tokenizer) names() []string {
	names := make([]string, len(t.tokens))
	for id, token := range t.tokens {
		names[id] = spell(token)
	}
	for _, a := range t.added {
		names[a.ID] = a.Content
	}
	return names
}

// quote writes a JSON string with only what JSON demands escaped, so that <|endoftext|>
// stays readable.
func quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

// lister writes JSON lists with one item on each line.
type lister struct {
	out   *bufio.Writer
	items int
}

func newLister(w io.Writer) *lister { return &lister{out: bufio.NewWriter(w)} }

// text, item and end leave errors to flush, which returns the first.
func (l *lister) text(s string) { l.out.WriteString(s) }

func (l *lister) item(indent, s string) {
	if l.items > 0 {
		l.out.WriteByte(',')
	}
	l.items++
	l.out.WriteString("\n" + indent + s)
}

func (l *lister) end(indent string) {
	if l.items > 0 {
		l.out.WriteString("\n" + indent)
	}
	l.items = 0
}

func (l *lister) flush() error { return l.out.Flush() }
