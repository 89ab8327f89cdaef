// Package fromsource makes the images of a cluster's parts from programs that
// were built here and from Debian packages, where no registry can be reached or
// none is wanted. It pushes them to the demo's own registry.
package fromsource
