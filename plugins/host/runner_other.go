//go:build unix && !linux

package host

// awaitExit cannot wait without reaping here, so the group is killed right after the process was reaped.
func awaitExit(int) bool { return false }

func onMainThread() bool { return false } // there is no Landlock here either
