package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Proc is what /proc says about a process.
type Proc struct {
	PID     int
	Parent  int
	Exe     string
	Cmdline string
	State   string
}

// Processes lists every live process of the system that can be looked at.
func Processes() []Proc {
	entries, _ := os.ReadDir("/proc") // always there on Linux
	var out []Proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

func readProc(pid int) (Proc, bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Proc{}, false // gone
	}
	i := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[i+1:]))
	if len(fields) < 2 || fields[0] == "Z" {
		return Proc{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	exe, _ := os.Readlink(filepath.Join(dir, "exe"))
	return Proc{PID: pid, Parent: parent, Exe: exe, Cmdline: string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})), State: fields[0]}, true
}

// Below lists the descendants of a process.
func Below(pid int) []Proc {
	all := Processes()
	var out []Proc
	parents := []int{pid}
	for len(parents) > 0 {
		var next []int
		for _, p := range all {
			if slices.Contains(parents, p.Parent) {
				out, next = append(out, p), append(next, p.PID)
			}
		}
		parents = next
	}
	return out
}

// About lists the processes that have a directory in their command line or executable, this process and its parents excepted.
func About(dir string) []Proc {
	var out []Proc
	for _, p := range Processes() {
		if p.PID != os.Getpid() && (strings.Contains(p.Cmdline, dir) || strings.Contains(p.Exe, dir)) {
			out = append(out, p)
		}
	}
	return out
}
