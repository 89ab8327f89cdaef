// Package rng gives named, independent, resumable streams of random numbers.
//
// A stream is the PCG generator of math/rand/v2, whose output is fixed by its
// specification, seeded from a run's seed and the stream's name. Data order,
// dropout, evaluation, initialisation and sampling each draw from a stream of
// their own, so that drawing more from one never moves another.
//
// It is not for cryptography.
package rng
