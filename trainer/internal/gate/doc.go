// Package gate decides whether a model may be promoted.
//
// It fails closed: evidence that is missing, unreadable, not a number or about
// another model blocks, as does a store that does not answer. Only the store's
// own "not found" counts as there being no promoted model to compare with.
//
// Judge is a pure function of a policy and the evidence, so everything that it
// can decide is in its tests. Reading the evidence and acting on the verdict is
// the gate stage's work; measuring is package evaluate's.
package gate
