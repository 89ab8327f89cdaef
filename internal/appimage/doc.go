// Package appimage reads an image that a build has pushed, and checks that it is the
// one that was planned: its machine, its base, what built it, and its labels.
//
// A build's end and a later build that finds the image again ask the same
// questions, here.
package appimage
