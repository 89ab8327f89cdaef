//go:build !amd64

package kernel

func machineISAs() []ISA { return nil }

func newSet(ISA) *Set { return portableSet() }
