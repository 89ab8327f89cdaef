// Package component builds the programs that a cluster is made of from Go
// modules at pinned versions, into a cache keyed by those versions. It makes no
// images and runs nothing of what it builds.
package component
