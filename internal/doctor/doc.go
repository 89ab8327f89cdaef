// Package doctor finds out why a pipeline would not start, or why a run hangs or
// failed, and says so in sentences: what is wrong, what shows it, what to do.
//
// It asks the API server, the registry and the store, and changes none of them.
// (To know whether images can be pushed it opens an upload and gives it up, as
// other tools do; and with Options.WriteProbe it writes and deletes one object.)
// What it may not see it says, and goes on with the rest: a missing permission of
// the user is no fault of the run.
//
// The arithmetic of scheduling is package schedule; the seconds of a run that
// works are package times.
package doctor
