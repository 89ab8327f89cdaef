// Package source takes the files that a build sees: what project.toml selects, in
// pack's terms, without .git, as a copy with fixed modes and times and one digest.
//
// The source itself is only read: no file in it is changed, created or followed
// out of it. Of a copy, either all is there or nothing.
//
// # Digest
//
// The digest is sha256 over the text "trainyard source v1" and a zero byte, then,
// for each file and link in the order of their paths' bytes, its kind ("file",
// "exec" for a file that its owner may execute, or "link"), a space, the sha256 of
// its content (of a link: of its target) in hexadecimal, a space, its path with
// slashes, and a zero byte. So it depends on paths, contents and executability
// alone: not on times, owners, other mode bits, or the order in which a file system
// lists. Directories without files count for nothing and are not copied, as in git.
package source
