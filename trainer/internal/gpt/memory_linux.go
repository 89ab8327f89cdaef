package gpt

import "golang.org/x/sys/unix"

// machineMemory returns the bytes of memory that the machine has, or 0.
func machineMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // 32 bits on some machines
}
