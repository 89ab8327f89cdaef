// Package storetest runs a real S3 server on the loopback interface for tests.
//
// It is for tests alone; no program imports it. A store that fails on demand is
// in package storefault.
package storetest
