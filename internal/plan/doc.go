// Package plan prepares the build of an image: it reads the project, inspects the
// builder, refuses early what could not be built, copies the source, and writes what
// the phases of the buildpacks' lifecycle need. Where the same source, builder, run
// image and settings were built before, it finds that image instead.
//
// Everything that can change the bits of an image is part of one key (see Key), and
// the key is the tag under which a build is pushed first. The package runs no phase
// (package phase does) and gives no image its final tag (package pin does).
package plan
