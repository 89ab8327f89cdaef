// Package optim updates parameters: AdamW, the learning-rate schedule and
// clipping by the global norm.
package optim
