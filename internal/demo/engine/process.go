package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// process is a process that is not mistaken for another which gets its number
// later: after a restart of the machine numbers begin anew.
type process struct {
	id int
	// started is when, in clock ticks since the machine started.
	started string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.id, p.started) }

// parseProcess reads what String writes.
func parseProcess(text string) (process, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return process{}, fmt.Errorf("%q does not tell a process and its start", text)
	}
	id, err := strconv.Atoi(fields[0])
	if err != nil || id <= 1 { // 0 and below are groups of processes
		return process{}, fmt.Errorf("%q is no process's number", fields[0])
	}
	if _, err := strconv.ParseUint(fields[1], 10, 64); err != nil {
		return process{}, fmt.Errorf("%q is no time of start", fields[1])
	}
	return process{id, fields[1]}, nil
}

// find returns the process with a number, and whether it runs: one that has ended
// stays in the list until its parent has noticed.
func find(id int) (found process, runs bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return process{}, false
	}
	// See proc(5). The second field, a name in parentheses, can hold any character.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const state, started = 0, 22 - 3 // the third and the 22nd
	if len(fields) <= started {
		return process{}, false
	}
	return process{id, fields[started]}, fields[state] != "Z" && fields[state] != "X"
}

func (p process) runs() bool {
	found, runs := find(p.id)
	return runs && found == p
}
