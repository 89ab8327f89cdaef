// Package phase holds the two executables that the lifecycle calls, detect and
// build, and the files that it reads from them. The work is in the packages
// beside this one.
package phase
