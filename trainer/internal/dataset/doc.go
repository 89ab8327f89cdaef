// Package dataset holds prepared data as files of tokens and turns them into
// batches: random ones to train on, all of them in order to evaluate on, and
// question-answer pairs with the question masked.
//
// A split is two files. SPLIT.bin has the tokens of its documents one after
// another, each document ending in <|endoftext|>, as little-endian uint16, or
// uint32 for vocabularies of more than 65535; no header. SPLIT.idx tells where
// documents begin: for each, and once more for the end, two little-endian uint64,
// the number of tokens and the number of bytes of text before it. meta.json says
// the rest; see Meta.
//
// Which document goes where is decided by package corpus and stage prepare. What
// a model does with a batch is no business of this package.
package dataset
