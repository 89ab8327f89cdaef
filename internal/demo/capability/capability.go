// Package capability reads which Linux capabilities a process may have. It gives
// none and takes none.
package capability

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// names of the capabilities in the order of their bits (linux/capability.h).
const names = "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP " +
	"LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER " +
	"SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE " +
	"SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP " +
	"MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF " +
	"CHECKPOINT_RESTORE"

// Set is a set of capabilities, one bit each.
type Set uint64

// Bounding returns the bounding set in a /proc/PID/status file: what a process
// and its children can ever have.
func Bounding(statusFile string) (Set, error) {
	data, err := os.ReadFile(statusFile)
	if err != nil {
		return 0, fmt.Errorf("read the capability bounding set: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		value, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: CapBnd: %w", statusFile, err)
		}
		return Set(set), nil
	}
	return 0, fmt.Errorf("%s has no line CapBnd", statusFile)
}

// Has says whether the set holds a capability, named as OCI specifications do
// ("CAP_SYS_RESOURCE"). One that this list does not know yet is not held.
func (s Set) Has(name string) bool {
	for bit, known := range strings.Fields(names) {
		if "CAP_"+known == name {
			return s&(1<<bit) != 0
		}
	}
	return false
}
