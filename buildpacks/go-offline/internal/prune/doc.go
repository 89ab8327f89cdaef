// Package prune takes the source out of the application directory when the
// programs are built, as go-build does: an image needs the program and the files
// that the project says it needs, no more.
//
// It never leaves the directory, whatever links there are in it.
package prune
