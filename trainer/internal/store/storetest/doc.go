// Package storetest helps tests with stores: a store that fails where a test
// wants it, and a real S3 server on the loopback interface.
//
// It is for tests alone; no program imports it.
package storetest
