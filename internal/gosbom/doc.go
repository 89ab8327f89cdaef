// Package gosbom writes a software bill of materials in CycloneDX for Go programs,
// from what the linker recorded in them: it lists what is in the image, not what
// a source tree might have needed.
//
// It holds no time and no random number, so that the same programs give the same
// bytes.
package gosbom
