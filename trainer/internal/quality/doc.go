// Package quality says how much of a corpus looks like what should not be
// trained on: seven detectors, each with a threshold on the share of documents
// that it flags, and a gate that passes when all of them do.
//
// A share means nothing without its denominator, so every report names the
// separator by which documents were told apart and counts them; Sensitivity
// applies the same rules under several separators.
//
// Detectors only look. Dropping documents is the business of package corpus.
package quality
