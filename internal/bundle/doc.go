// Package bundle makes and reads Tekton bundles: images whose layers are one Tekton
// object each, after the contract in Tekton's documentation.
//
// The same objects give the same digest on every machine. How an object must look
// is package manifest's business, how a registry is reached package
// registryclient's.
package bundle
