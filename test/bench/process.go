package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the kernel's accounts for programs (USER_HZ), the same on every Linux.
const clockTick = 10 * time.Millisecond

// processCPU is what a process has used, without its children.
func processCPU(pid int) time.Duration {
	f := stat(pid)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * clockTick
}

// stat are the fields of /proc/PID/stat from the state on: the name before it may hold anything.
func stat(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	text := string(b)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

// children are the processes below one, at whatever depth.
func children(pid int) (out []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	for _, e := range all {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if f := stat(n); len(f) > 1 {
				parents[n], _ = strconv.Atoi(f[1])
			}
		}
	}
	for n := range parents {
		for up := parents[n]; up > 1; up = parents[up] {
			if up == pid {
				out = append(out, n)
				break
			}
		}
	}
	return out
}

// peakMiB is the largest resident size of a process so far.
func peakMiB(pid int) float64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 64)
			return kib / 1024
		}
	}
	return 0
}
