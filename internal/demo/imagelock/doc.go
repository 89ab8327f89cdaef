// Package imagelock turns names of published images into digests, and keeps them:
// a digest comes from a lock file, else from a pinned source such as a Go module,
// else from a registry, once, and then from the lock file. It pulls no image.
package imagelock
