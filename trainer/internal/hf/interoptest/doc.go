// Package interoptest holds the trainer's half of `make interop`: models are
// exchanged with Hugging Face's transformers in both directions. Its tests have the
// build tag interop and are run by scripts/interop/run.sh, which has the other half.
package interoptest
