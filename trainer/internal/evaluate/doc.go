// Package evaluate measures a model on a held-out split: loss in nats per
// token, perplexity, bits per byte, and the standard error of each over
// documents; and compares two models on the same documents in pairs.
//
// The documents of a split are scored in order over the whole split, so the
// same model and data give the same bits whatever the number of threads. A
// quick mode scores a seeded sample of the documents, and says so.
//
// Statistics work on per-document sums alone and know nothing of models; what
// runs a model is behind the interface Scorer. Nothing here judges: that is
// package gate's work.
package evaluate
