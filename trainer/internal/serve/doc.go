// Package serve answers OpenAI's completions API over HTTP from one model:
// POST /v1/completions (also as a stream of server-sent events), GET /v1/models,
// /healthz, /readyz and /metrics.
//
// Bodies, time and concurrency are bounded, a client that goes away stops its
// generation, and a shutdown lets running answers end. There is no
// authentication and no TLS: those belong to what stands in front.
package serve
