// Package bpe is byte-level byte-pair encoding as GPT-2 has it: it turns bytes into
// token ids and back, learns a vocabulary from documents, and reads and writes the
// files that Hugging Face's libraries exchange (tokenizer.json, vocab.json with
// merges.txt).
//
// Any bytes encode, and what was encoded decodes to the same bytes. Text is cut into
// words by GPT-2's pattern (see wordEnd), and in each word the adjacent pair with the
// lowest merge rank is joined, the leftmost first, until none is left. The methods are
// public: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with
// Subword Units" (2016), and Radford et al., "Language Models are Unsupervised Multitask
// Learners" (2019).
//
// Letters, numbers and spaces are those of the Unicode tables of the Go release that
// built the program; a code point that a later Unicode version assigns may be cut
// differently by a newer release.
//
// The package is not for other kinds of tokenizer (WordPiece, Unigram, SentencePiece,
// GPT-4's pattern): their files are refused, not approximated. It neither cleans nor
// splits documents, and it does not decide which documents a vocabulary may be learned
// from.
package bpe
