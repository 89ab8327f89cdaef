package bpe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// byteVocab is the beginning of a vocabulary: all bytes in GPT-2's order.
func byteVocab() string {
	var out strings.Builder
	for id, b := range byteOrder {
		fmt.Fprintf(&out, "%s:%d,", quote(spell([]byte{b})), id)
	}
	return out.String()
}

const (
	byteLevelJSON     = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true}`
	postProcessorJSON = `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false}`
)

// smallJSON is a tokenizer.json with two merges, as old files have it.
func smallJSON() string {
	return `{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":258,"special":true,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false}],` +
		`"normalizer":null,"pre_tokenizer":` + byteLevelJSON + `,"post_processor":` + postProcessorJSON + `,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true},` +
		`"model":{"dropout":null,"unk_token":"","continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,"vocab":{` + byteVocab() + `"ab":256,"Ġab":257,"<|endoftext|>":258},"merges":["a b","Ġ ab"]}}`
}

func TestBothFormsOfMergesLoad(t *testing.T) {
	old := smallJSON()
	paired := strings.Replace(old, `["a b","Ġ ab"]`, `[["a","b"],["Ġ","ab"]]`, 1)
	if paired == old {
		t.Fatal("the form was not changed")
	}
	var digests []string
	for _, text := range []string{old, paired} {
		tokenizer, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tokenizer.EncodeWithSpecial("ab ab<|endoftext|>"), []int32{256, 257, 258}; !slices.Equal(got, want) {
			t.Errorf("ids %v, want %v", got, want)
		}
		digests = append(digests, tokenizer.Digest())
	}
	if digests[0] != digests[1] {
		t.Error("the two forms give different digests")
	}
}

// What transformers 5.24 saves for GPT-2.
func TestTemplateThatAddsNothingLoads(t *testing.T) {
	text := strings.Replace(smallJSON(), postProcessorJSON, `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],`+
		`"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{}}`, 1)
	if !strings.Contains(text, "TemplateProcessing") {
		t.Fatal("the post-processor was not changed")
	}
	if _, err := Parse([]byte(text)); err != nil {
		t.Error(err)
	}
}

func TestAddedTokensBesideTheVocabulary(t *testing.T) {
	text := strings.Replace(smallJSON(), `,"<|endoftext|>":258}`, `}`, 1)
	text = strings.Replace(text, `"added_tokens":[`, `"added_tokens":[{"id":259,"special":false,"content":"two words \u2028é"},`, 1)
	tokenizer, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Added{{258, EndOfText, true}, {259, "two words \u2028é", false}}
	if got := tokenizer.AddedTokens(); !slices.Equal(got, want) {
		t.Errorf("added tokens %v, want %v", got, want)
	}
	var out bytes.Buffer
	if err := tokenizer.SaveTokenizerJSON(&out); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := again.AddedTokens(); !slices.Equal(got, want) || again.Digest() != tokenizer.Digest() {
		t.Errorf("added tokens %v after saving, want %v", got, want)
	}
}

// badFiles are tokenizer.json files made bad in one place each, and what the error names.
var badFiles = []struct{ name, old, new, message string }{
	{"empty", "*", ``, "the JSON ends too early"},
	{"no object", "*", `[1]`, "want a JSON object"},
	{"cut short", `"Ġ ab"]}}`, `"Ġ ab"`, "the JSON ends too early"},
	{"not JSON", `"version":`, `version:`, "not JSON"},
	{"not UTF-8", `"1.0"`, "\"\xff\"", "not UTF-8"},
	{"something after", `"Ġ ab"]}}`, `"Ġ ab"]}}{}`, "something follows"},
	{"unknown member", `"version"`, `"Version"`, "Version: unknown"},
	{"member twice", `"padding"`, `"version"`, `"version" is there twice`},
	{"normalizer", `"normalizer":null`, `"normalizer":{"type":"NFC"}`, "normalizer: not supported"},
	{"prefix space", `"add_prefix_space":false`, `"add_prefix_space":true`, "pre_tokenizer: add_prefix_space: not supported"},
	{"prefix space unsaid", `"add_prefix_space":false,`, ``, "pre_tokenizer: add_prefix_space is missing"},
	{"own pattern", `"trim_offsets":true}`, `"trim_offsets":true,"use_regex":false}`, "pre_tokenizer: use_regex: not supported"},
	{"sequence of pre-tokenizers", byteLevelJSON, `{"type":"Sequence","pretokenizers":[]}`, `pre_tokenizer: type "Sequence" is not supported`},
	{"unknown to ByteLevel", `"trim_offsets":true}`, `"reverse":true}`, "pre_tokenizer: reverse: unknown"},
	{"no pre-tokenizer", `"pre_tokenizer":` + byteLevelJSON + `,`, ``, "pre_tokenizer is missing"},
	{"null pre-tokenizer", byteLevelJSON, `null`, "pre_tokenizer: want a JSON object"},
	{"tokens around a text", postProcessorJSON, `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<|endoftext|>":{}}}`, `post_processor: special_tokens: token "<|endoftext|>" around a text`},
	{"template of two parts", postProcessorJSON, `{"type":"TemplateProcessing","single":[{},{}],"special_tokens":{}}`, "post_processor: single: a template of 2 parts"},
	{"other post-processor", postProcessorJSON, `{"type":"RobertaProcessing"}`, `post_processor: type "RobertaProcessing"`},
	{"other decoder", `"decoder":{"type":"ByteLevel"`, `"decoder":{"type":"WordPiece"`, `decoder: type "WordPiece"`},
	{"other model", `"dropout":null`, `"type":"Unigram"`, `model: type: only "BPE"`},
	{"dropout", `"dropout":null`, `"dropout":0.1`, "model: dropout: not supported"},
	{"ignore_merges", `"dropout":null`, `"ignore_merges":true`, "model: ignore_merges: not supported"},
	{"byte_fallback", `"dropout":null`, `"byte_fallback":1`, "model: byte_fallback: want true or false"},
	{"unknown to the model", `"dropout":null`, `"temperature":1`, "model: temperature: unknown"},
	{"prefix of subwords", `"continuing_subword_prefix":""`, `"continuing_subword_prefix":"##"`, "continuing_subword_prefix: not supported"},
	{"no vocabulary", `"vocab":{`, `"unk_token":{`, `"unk_token" is there twice`},
	{"id twice", `"Ġab":257`, `"Ġab":256`, "has id 256, which token"},
	{"token twice", `"Ġab":257`, `"ab":257`, `"ab" is there twice`},
	{"gap in the ids", `"Ġab":257`, `"Ġab":300`, "300, but there are 259 tokens"},
	{"negative id", `"Ġab":257`, `"Ġab":-1`, "want a token id"},
	{"fractional id", `"Ġab":257`, `"Ġab":257.0`, "want a token id"},
	{"huge id", `"Ġab":257`, `"Ġab":99999999999999999999`, "want a token id"},
	{"empty token", `"Ġab":257`, `"":257`, "is empty"},
	{"token of no bytes", `"Ġab":257`, `" ab":257`, "stands for no byte"},
	{"long token", `"Ġab":257`, `"` + strings.Repeat("a", 3*maxTokenBytes) + `":257`, "is longer than"},
	{"byte missing", `"!":0`, `"!!":0`, `lacks the token "!" for byte 0x21`},
	{"merge of unknown tokens", `"Ġ ab"`, `"Ġ ac"`, `token "ac" is not in the vocabulary`},
	{"merge into an unknown token", `"Ġ ab"`, `"b a"`, `token "ba" is not in the vocabulary`},
	{"merge twice", `"Ġ ab"`, `"a b"`, "repeats merge 0"},
	{"merge of three", `"Ġ ab"`, `"Ġ a b"`, "merge 1: want two tokens"},
	{"merge of one", `"Ġ ab"`, `"Ġab"`, "merge 1: want two tokens"},
	{"merge of a list of three", `"Ġ ab"`, `["Ġ","a","b"]`, `merge 1: want "a b"`},
	{"merge of numbers", `"Ġ ab"`, `[1,2]`, `merge 1: want "a b"`},
	{"merges in an object", `["a b","Ġ ab"]`, `{}`, "model: merges: want a list"},
	{"added token with another id", `"id":258`, `"id":257`, "has id 257, but 258 in the vocabulary"},
	{"added token without id", `"id":258,`, ``, "id is missing"},
	{"added token without content", `"content":"<|endoftext|>",`, ``, "content is missing"},
	{"added token that strips", `"lstrip":false`, `"lstrip":true`, "lstrip: not supported"},
	{"added token that is merged", `"content":"<|endoftext|>"`, `"content":"ab"`, "has id 258, but 256"},
	{"added tokens in an object", `"added_tokens":[`, `"added_tokens":{},"x":[`, "added_tokens: want a list"},
}

func TestBadTokenizerJSONIsRefused(t *testing.T) {
	for _, c := range badFiles {
		t.Run(c.name, func(t *testing.T) {
			good := smallJSON()
			text := strings.Replace(good, c.old, c.new, 1)
			if c.old == "*" {
				text = c.new
			}
			if text == good {
				t.Fatalf("%q is not in the good file", c.old)
			}
			path := filepath.Join(t.TempDir(), TokenizerFile)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path)
			checkRefusal(t, err, path, c.message)
		})
	}
}

// checkRefusal wants an error of one line that names the file and says message.
func checkRefusal(t *testing.T, err error, path, message string) {
	t.Helper()
	switch {
	case err == nil:
		t.Error("no error")
	case !strings.Contains(err.Error(), path), !strings.Contains(err.Error(), message):
		t.Errorf("error %q, want one with %q and %q", err, path, message)
	case strings.Contains(err.Error(), "\n"), len(err.Error()) > 400:
		t.Errorf("error of several lines or %d bytes: %q", len(err.Error()), err)
	}
}

func TestBadVocabAndMergesAreRefused(t *testing.T) {
	vocab := "{" + byteVocab() + `"ab":256}`
	for _, c := range []struct{ name, vocab, merges, file, message string }{
		{"vocabulary is a list", "[]", "a b\n", VocabFile, "want a JSON object"},
		{"merges have three tokens", vocab, "#version: 0.2\na b c\n", MergesFile, "line 2: want two tokens"},
		{"merges have an empty line", vocab, "#version: 0.2\n\na b\n", MergesFile, "line 2: want two tokens"},
		{"merges are not UTF-8", vocab, "\xff \xfe\n", MergesFile, "not UTF-8"},
		{"merge is not in the vocabulary", vocab, "b a\n", VocabFile, `token "ba" is not in the vocabulary`},
		{"merge comes twice", vocab, "a b\na b\n", VocabFile, "repeats merge 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeAll(t, dir, map[string]string{VocabFile: c.vocab, MergesFile: c.merges})
			_, err := Load(dir)
			checkRefusal(t, err, filepath.Join(dir, c.file), c.message)
		})
	}
}

func writeAll(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMergesFileForms(t *testing.T) {
	vocab := "{" + byteVocab() + `"ab":256,"##":257}`
	for name, merges := range map[string]string{
		"with version":    "#version: 0.2\na b\n# #\n",
		"without version": "a b\n# #\n",
		"no last newline": "#version: 0.2\na b\n# #",
		"from Windows":    "#version: 0.2\r\na b\r\n# #\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeAll(t, dir, map[string]string{VocabFile: vocab, MergesFile: merges})
			tokenizer, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := tokenizer.Encode("ab##"), []int32{256, 257}; !slices.Equal(got, want) {
				t.Errorf("ids %v, want %v", got, want)
			}
		})
	}
}

func TestNoTokenizerIsNotExist(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "gone"), filepath.Join(dir, "gone.json")} {
		_, err := Load(path)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v, want fs.ErrNotExist", path, err)
		}
		checkRefusal(t, err, path, "")
	}
	writeAll(t, dir, map[string]string{MergesFile: ""})
	_, err := Load(dir)
	checkRefusal(t, err, filepath.Join(dir, VocabFile), "neither")
}

func TestHugeFileIsRefusedUnread(t *testing.T) {
	path := filepath.Join(t.TempDir(), TokenizerFile)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<30), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Load(path)
	checkRefusal(t, err, path, "larger than 64 MiB")
}
