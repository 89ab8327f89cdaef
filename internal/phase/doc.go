// Package phase runs one phase of the buildpacks' lifecycle by a plan: the builder's
// own program, with the arguments that the negotiated platform interface wants, and
// its exit code told as a reason and a remedy in the last line.
//
// What lies between the program and Kubernetes is done here too: the source goes to
// where the build may change it, credentials are kept out of phases that run
// foreign code, and the exporter gets folders with the modes that end up in the
// image. It does not interpret what the phases leave; package pin does.
package phase
