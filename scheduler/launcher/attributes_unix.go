//go:build unix && !linux

package launcher

import "syscall"

// attributes: other systems have no parent-death signal; the executor leaves when its scheduler stays away.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
