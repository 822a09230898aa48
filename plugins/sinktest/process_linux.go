package sinktest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// proc is one process, told from later ones of its number by the time of its start.
type proc struct {
	pid   int
	start string
	name  string
}

func (p proc) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.name) }

// alive reports whether it still runs. One that has ended and was not waited for does not.
func (p proc) alive() bool {
	now, parent, state, err := stat(p.pid)
	return err == nil && now.start == p.start && parent >= 0 && state != "Z" && state != "X"
}

// stat reads /proc/PID/stat. The name may hold spaces and brackets: what counts follows the last one.
func stat(pid int) (p proc, parent int, state string, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, 0, "", err
	}
	text := string(raw)
	open, closing := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || closing < open {
		return p, 0, "", fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	rest := strings.Fields(text[closing+1:])
	if len(rest) < 20 {
		return p, 0, "", fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	parent, err = strconv.Atoi(rest[1])
	return proc{pid, rest[19], text[open+1 : closing]}, parent, rest[0], err
}

// descendants are the processes below one, zombies included, itself not.
func descendants(root int) []proc {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]proc{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, parent, _, err := stat(pid); err == nil {
				children[parent] = append(children[parent], p)
			}
		}
	}
	var all []proc
	for below := children[root]; len(below) > 0; {
		p := below[0]
		all, below = append(all, p), append(below[1:], children[p.pid]...)
	}
	return all
}

// footprint is what a process holds.
type footprint struct {
	files     int   // open descriptors
	memory    int64 // bytes in memory
	peak      int64 // the most that ever was, in bytes
	processes int   // below it
}

func measure(pid int) (f footprint, err error) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return f, err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return f, err
	}
	f.files, f.processes = len(fds), len(descendants(pid))
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.Fields(value + " 0")[0], 10, 64)
		switch name {
		case "VmRSS":
			f.memory = kib << 10
		case "VmHWM":
			f.peak = kib << 10
		}
	}
	return f, nil
}

// visible is a process's environment and arguments, as the system shows them.
func visible(pid int) ([]string, error) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, s := range bytes.Split(append(env, args...), []byte{0}) {
		all = append(all, string(s))
	}
	return all, nil
}
