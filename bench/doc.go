// Command bench compares the trainer with others on this machine: training
// steps beside Debian's PyTorch (and llm.c, when built by the user), matrix
// products beside Debian's OpenBLAS, and the trainer with itself from one
// thread to all.
//
//	go run ./bench -rounds 5
//
// The contenders are programs of their own, run one at a time in alternating
// rounds, so that a slow minute of the machine meets all of them. It prints
// Markdown, and writes every sample as JSON with -o.
//
// It is a measurement, never a test: nothing fails when a figure is low.
package main
