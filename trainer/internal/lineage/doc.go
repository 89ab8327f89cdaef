// Package lineage records where every artifact of a run came from and checks
// those records against the artifacts.
//
// Each stage writes one record, RUN/lineage/<stage>.json: an in-toto Statement
// (v1) whose subjects are the stage's outputs and whose predicate has the form
// of SLSA provenance v1: parameters, seeds, host, code, inputs with digests,
// start and end. A stage uses it like this:
//
//	rec := lineage.Begin(lineage.Options{Run: dir, RunID: id, Stage: "train", Now: time.Now, Code: code, Host: host})
//	rec.Parameter("max-iters", 300)
//	rec.Seed("seed", 1337)
//	rec.Input(ctx, lineage.KindData, "train.bin")    // relative to the run directory
//	...
//	rec.Output(ctx, lineage.KindFile, "loss_history.csv")
//	err := rec.Write(lineage.Succeeded)
//
// Verify reads the records of a run, builds the tree from a model back to
// corpus, code and machine, and says what does not match or is missing.
//
// It does not sign: the records are in the form that signers (Tekton Chains,
// cosign attest) take.
package lineage
