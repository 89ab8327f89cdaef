// Package gitsource puts source code into a workspace: from a git repository, at
// exactly one commit, or by looking at what lies there already.
//
// Tasks run it without git, shell or home directory, on addresses and revisions
// that came from outside, so all of them are checked before anything connects.
// A checkout is made aside and renamed: what is in its place is whole.
//
// It is no git client: it keeps no branches, merges nothing, pushes nothing, runs
// no hook or filter and resolves no LFS pointer.
package gitsource
