// Package lifecycle puts the programs of a Cloud Native Buildpacks lifecycle into
// the archive that pack builds a builder from.
//
// It does not compile them, and it only takes those of the version whose library
// this program is linked with, since that is where the lists of supported APIs
// come from.
package lifecycle
