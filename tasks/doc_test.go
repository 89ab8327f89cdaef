// Package tasks holds the tests of the tasks that belong to one task alone; rules
// for all YAML are in internal/conformance.
package tasks
