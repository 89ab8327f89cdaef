// Package conformance holds the tests of the YAML in this repository: tasks/,
// pipelines/, pipelines/runs/, sa/, pv/ and triggers/.
//
// Each rule is a function over all objects, named after the fault that it keeps out
// (the I-numbers are faults that users of other systems reported), and is tested
// twice: the repository has to hold it, and it has to find its fault in an example
// that was broken on purpose. There is no code here but tests.
package conformance
