package stage

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// logHeader begins what one process appends to a log of the run.
const logHeader = "=== "

// LogHeader is the line that begins what one process appends to a log: a run directory
// may have seen several owners, and whose errors these are must be told.
func LogHeader(owner string, now time.Time) string {
	return strings.TrimSpace(logHeader+now.UTC().Format(time.RFC3339)+" "+owner) + "\n"
}

// ErrorPrefix begins the line with which a process says why it failed.
const ErrorPrefix = "trainer: "

// maxLogLine is the longest line of a log that is looked at, in bytes.
const maxLogLine = 1 << 20

// lastError finds in a task's log why its last process failed, "" where it does not say
// so: it was killed, could not write, or never began. What another owner's process
// said is none of it.
func lastError(dir, task, owner string) string {
	f, err := os.Open(filepath.Join(dir, LogsDir, task+".log"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLogLine)
	last, mine := "", false
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, logHeader); ok {
			_, whose, _ := strings.Cut(rest, " ")
			last, mine = "", whose == owner
			continue
		}
		if strings.TrimSpace(line) != "" {
			last = line
		}
	}
	why, failed := strings.CutPrefix(last, ErrorPrefix)
	if lines.Err() != nil || !mine || !failed {
		return ""
	}
	return strings.TrimPrefix(why, task+": ")
}
