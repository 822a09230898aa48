package executor

import (
	"os"
	"strconv"
	"strings"
)

// machineMemory is what this process may use: the machine's memory, or its container's limit where that is lower.
func machineMemory() int64 {
	total := int64(8 << 30)
	for line := range strings.SplitSeq(readText("/proc/meminfo"), "\n") {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
				total = kb << 10
			}
		}
	}
	if limit, err := strconv.ParseInt(strings.TrimSpace(readText("/sys/fs/cgroup/memory.max")), 10, 64); err == nil && limit < total {
		return limit
	}
	return total
}

// residentBytes is the memory that this process has now; 0 where the system does not say.
func residentBytes() int64 {
	fields := strings.Fields(readText("/proc/self/statm"))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

func readText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "" // not Linux
	}
	return string(b)
}
