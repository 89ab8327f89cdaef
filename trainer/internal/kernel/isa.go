package kernel

import (
	"errors"
	"fmt"
	"strings"
)

// ISA is an instruction set that the kernels are written for.
type ISA string

// The instruction sets, best last.
const (
	Portable ISA = "portable"
	AVX2     ISA = "avx2"
	AVX512   ISA = "avx512"
)

// EnvISA names the environment variable that forces an instruction set.
const EnvISA = "TRAINER_ISA"

// ErrISA is wrapped when an instruction set is unknown or not on this machine.
var ErrISA = errors.New("instruction set not available")

// Available returns what this machine can run, best last.
func Available() []ISA { return append([]ISA{Portable}, machineISAs()...) }

// Choose returns the kernels for an instruction set by name; an empty name or
// "auto" chooses the best that this machine has.
func Choose(name string) (*Set, error) {
	have := Available()
	want := ISA(strings.ToLower(name))
	if want == "" || want == "auto" {
		want = have[len(have)-1]
	}
	for _, isa := range have {
		if isa == want {
			return newSet(isa), nil
		}
	}
	return nil, fmt.Errorf("%w: %s=%q, this machine has %v", ErrISA, EnvISA, name, have)
}
