package toolimage

import (
	"bytes"
	"debug/elf"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// machines are the architectures that an image can be made for.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
}

// checkStatic refuses a program that could not start in the image: one for
// another machine, or one that asks for a dynamic linker.
func checkStatic(program []byte, p v1.Platform) error {
	want, ok := machines()[p.Architecture]
	if !ok || p.OS != "linux" {
		return fmt.Errorf("platform %s is not supported, choose linux/amd64 or linux/arm64", p.String())
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("not a Linux program: %w", err)
	}
	if f.Machine != want {
		return fmt.Errorf("built for %s, but the image is for %s", f.Machine, p.String())
	}
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP {
			return fmt.Errorf("dynamically linked, and the image has no linker: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
