// Package safetensors reads and writes the safetensors format of Hugging Face:
// eight bytes of header length (little-endian), a JSON header that names every
// tensor with dtype, shape and place, then the data without gaps.
// The format: https://github.com/huggingface/safetensors#format.
//
// A file is untrusted input: the header is checked whole before any tensor is
// read, nothing is allocated on its word alone, and a fault is an error that
// wraps ErrFormat. Tensors are streamed between the file and slices of the
// caller, through a small buffer.
//
// Nothing here knows of models (package hf) or of replacing files safely
// (package atomicfile).
package safetensors
