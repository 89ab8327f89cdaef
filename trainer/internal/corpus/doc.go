// Package corpus turns files of text into documents that are fit to train on:
// it finds the files, cuts them into documents, cleans and filters these, drops
// duplicates and assigns each document to a split.
//
// What a document is, is said once, by a Separator; everything that counts
// documents goes through a Reader, so that two reports never disagree about the
// denominator of a percentage.
//
// All of it streams. Memory does not grow with the size of the corpus, apart
// from the fingerprints of Exact (about 16 bytes for each distinct document) and
// those of Near, which are bounded by its window.
//
// Tokens, files of tokens and batches belong to package dataset; judging quality
// to package quality.
package corpus
