// Package train is the training loop: it draws batches, runs a model and its
// optimizer, evaluates, and calls hooks. Checkpoints, the loss history,
// progress and the policies that stop a run early are hooks; none of them is
// known to the loop.
//
// The loop sees model and optimizer through Stepper and data through Source and
// Evaluation, so it knows of no files and no formats.
//
// A run is a function of its seed and its configuration alone. Data, dropout and
// evaluation draw from streams of their own, dropout masks depend on seed, step
// and micro-batch only, and nothing that merely observes (how often to evaluate,
// to save, to print) touches any of them. That is why a resumed run ends with
// the same bits as one that was never stopped.
package train
