// Package pause waits for a while, or until a context ends. It neither repeats nor
// backs off: how often something is tried is for its callers to say.
package pause
