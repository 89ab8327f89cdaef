package lineage

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/cpu"
)

// ThisHost describes the machine that runs this process. Threads and isa are
// what the trainer uses of it.
func ThisHost(threads int, isa string) Host {
	h := Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Threads: threads, ISA: isa, Go: runtime.Version(), Features: features(), CPU: "unknown",
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		if name := cpuName(io.LimitReader(f, 1<<20)); name != "" {
			h.CPU = name
		}
	}
	return h
}

// cpuName reads the first model name of Linux's cpuinfo.
func cpuName(r io.Reader) string {
	for s := bufio.NewScanner(r); s.Scan(); {
		key, value, ok := strings.Cut(s.Text(), ":")
		if key = strings.TrimSpace(key); ok && (key == "model name" || key == "Processor") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// features lists what decides the speed of the kernels.
func features() []string {
	var fs []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"avx", cpu.X86.HasAVX}, {"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA}, {"avx512f", cpu.X86.HasAVX512F},
		{"avx512bw", cpu.X86.HasAVX512BW}, {"avx512dq", cpu.X86.HasAVX512DQ}, {"avx512vl", cpu.X86.HasAVX512VL},
		{"asimd", cpu.ARM64.HasASIMD}, {"sve", cpu.ARM64.HasSVE},
	} {
		if f.has {
			fs = append(fs, f.name)
		}
	}
	return fs
}

// ThisCode completes what is known of this program, from the platform that runs its
// image or from the linker: what is empty is taken from the build's own stamp of version
// control. The digest of the program itself is noted too.
func ThisCode(known Code, hashBinary func() (string, error)) Code {
	c := known
	if c.Repository == "" {
		c.Repository = "https://github.com/trainyard/trainyard"
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if c.Version == "" {
			c.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && known.Commit == "":
				c.Commit = s.Value
			case s.Key == "vcs.modified" && known.Commit == "":
				c.Modified = s.Value == "true"
			}
		}
	}
	if sum, err := hashBinary(); err == nil {
		c.Binary = sum
	}
	return c
}
