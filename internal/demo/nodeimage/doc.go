// Package nodeimage makes a kind node image, as kindest/node is, from a Debian
// file system, the files of kind's own module, and programs that were built from
// source. The images of Kubernetes' own components are in it, so that a cluster
// starts without a registry.
package nodeimage
