// Package deps has no code, only tests that keep the trainer small: what it may
// link, that it needs no C, and that any current Go builds it.
package deps
