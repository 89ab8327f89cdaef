// Package registry keeps models under their digest and names under aliases, on
// top of any store.
//
//	models/NAME/SHA256/            files of one version, never changed;
//	                               SHA256 is the digest of model.safetensors
//	models/NAME/SHA256/manifest.json  written last: with it the version exists
//	models/NAME/history/0000000042.json  one event, never changed
//	models/NAME/aliases/ALIAS.json what the last event said, for quick readers
//
// The history is the truth. An event gets its number by a conditional write
// that only one writer can win, and that write is the move: there is no moment
// at which an alias has moved without an event, nor an event without a move.
// The alias file follows. A process that dies in between leaves an alias file
// that is behind; Get looks at the newer events anyway, and the next promote,
// rollback or blocked candidate brings the file up to date.
//
// A move names the version that it expects the alias to have (by default the
// one it saw first). If that is no longer so the move is not wanted any more
// and ends with ErrMoved: a candidate that was compared with one model must
// not replace another.
//
// Package registry does not judge models (package gate) and deletes nothing.
package registry
