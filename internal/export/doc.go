// Package export makes an image of the layers of a build the way the lifecycle's
// exporter does, for a step that cannot run as the user that the builder is made for.
//
// The lifecycle's exporter writes the owners and modes of the folders above a layer
// into the image as it finds them on disk. A cluster such as OpenShift gives each
// namespace users of its own, so one source would give another image in each. Here
// those folders get the owners and modes that they have when the builder's user runs
// the phases; all else is the lifecycle's own code, of the same version. The image
// has the same digest then, and where that cannot be promised nothing is exported.
//
// It does not run phases, and it exports no images that extensions have changed.
package export
