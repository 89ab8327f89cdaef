// Package atomicfile writes files and directories that a reader sees either
// whole or not at all, and that every member of the group may replace.
//
// The stages of a pipeline run under different user ids on one volume and share
// a group, so files get mode 0664 and directories 0775 whatever the umask says.
//
// It is not a lock: of two writers of one path the last to finish wins.
package atomicfile
