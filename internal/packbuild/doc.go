// Package packbuild builds an image of a plan where there is a container engine, as
// on a laptop: with pack's library, which runs the same lifecycle of the same
// builder as the cluster's task does, so that both give the same digest.
//
// Images are fetched by our own registry client and handed to the engine, whose
// configuration does not matter: it need not know any registry.
package packbuild
