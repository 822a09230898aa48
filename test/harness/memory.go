package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// MemoryHolds searches the readable memory of a process.
func MemoryHolds(t testing.TB, pid int, needle []byte) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	require.NoError(t, err)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer mem.Close()
	buf := make([]byte, 4<<20)
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var perms string
		if n, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms); n != 3 || err != nil || perms[0] != 'r' {
			continue
		}
		// Pieces overlap, so that the needle is found across their borders.
		for at := from; at < to; at += int64(len(buf) - len(needle)) {
			n, err := mem.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
			if bytes.Contains(buf[:n], needle) {
				return true
			}
			if err != nil && !errors.Is(err, io.EOF) {
				break // a region that cannot be read, or memory given back meanwhile
			}
		}
	}
	return false
}
