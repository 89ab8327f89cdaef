// Package hf reads and writes models in Hugging Face's GPT-2 layout: a directory
// with config.json and model.safetensors that transformers' GPT2LMHeadModel loads
// and saves.
//
// Weights go straight between the file and the model's own slices: a model is in
// memory once. Matrices have GPT-2's Conv1D orientation, (in, out), on both sides,
// so none is transposed.
//
// The tokenizer's own files belong to package bpe; only tokenizer_config.json, the
// note that tells transformers how to use them, is written here.
package hf
