//go:build unix

package stage

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns what this process has used, by all threads.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Beside the wall clock's MB/s it gives those of a core, from processor time: a
// figure that other work on the machine changes little.
func BenchmarkPrepare(b *testing.B) {
	docs := sentences(1, 40000)
	input := textFile(b, docs)
	info, err := os.Stat(input)
	if err != nil {
		b.Fatal(err)
	}
	tok := smallPrepare(b, textFile(b, docs[:2000]))
	tok.VocabSize = 2000
	mustPrepare(b, tok)
	for _, bench := range []struct {
		name string
		edit func(*PrepareOptions)
	}{
		{"clean+split+encode", func(o *PrepareOptions) { o.DropNear, o.DropExact, o.Sensitivity = false, false, nil }},
		{"everything", func(*PrepareOptions) {}},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", bench.name, workers), func(b *testing.B) {
				o := smallPrepare(b, input)
				o.Tokenizer, o.Workers = tok.RunDir, workers
				bench.edit(&o)
				b.SetBytes(info.Size())
				before := cpuTime(b)
				for b.Loop() {
					mustPrepare(b, o)
				}
				used := cpuTime(b) - before
				b.ReportMetric(float64(info.Size())*float64(b.N)/1e6/used.Seconds(), "MB/s/core")
			})
		}
	}
}
