// Package buildtest makes what tests of image builds need: a registry in memory,
// builders, run images and built images that look as pack and the lifecycle make
// them. Tests alone use it.
package buildtest
