// Package gpt is the GPT-2 architecture: parameters, forward, backward and
// KV-cached decoding, on the kernels of package kernel.
//
// Letters in comments name the shapes: B sequences in a batch, T tokens in a
// sequence, C channels, H heads, V words of the vocabulary. All tensors are
// float32 and row-major; weight matrices have GPT-2's Conv1D orientation
// (in, out).
//
// Nothing here knows of files (package hf), data (package dataset) or updates
// (package optim).
package gpt
