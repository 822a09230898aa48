package host

import (
	"errors"
	"fmt"
	"strings"
)

// Kinds of failure, for errors.Is.
var (
	// ErrConfig: the path is relative, missing, a symbolic link or no executable; or the plugin directory is not safe.
	ErrConfig = errors.New("plugin is misconfigured")
	// ErrNotLocked: plugins.lock does not name the plugin.
	ErrNotLocked = errors.New("plugin is not in plugins.lock")
	// ErrChecksum: the file is not the one that was locked.
	ErrChecksum = errors.New("plugin has the wrong checksum")
	// ErrHandshake: the process did not announce itself as a plugin does.
	ErrHandshake = errors.New("plugin did not complete the handshake")
	// ErrProtocol: it announced a protocol version, or a transport, that this host does not speak.
	ErrProtocol = errors.New("plugin speaks another protocol")
	// ErrStart: the system refused to run it.
	ErrStart = errors.New("plugin cannot be started")
	// ErrCrashed: the process ended while it was needed.
	ErrCrashed = errors.New("plugin crashed")
	// ErrHung: it did not answer within the call's deadline.
	ErrHung = errors.New("plugin did not answer in time")
	// ErrTooLarge: a message exceeded the cap, in either direction.
	ErrTooLarge = errors.New("message exceeds the limit")
	// ErrStopping: the host has begun to stop the plugin.
	ErrStopping = errors.New("plugin is being stopped")
)

// Error is what every failed start and every failed call returns, except where the sink itself answered with an error: that one is passed
// on as it came. It unwraps to its kind and to its cause; status.Code sees the cause's code.
type Error struct {
	Kind   error
	Plugin string
	Path   string
	Call   string   // empty for a start
	Detail string   // what was seen
	Hint   string   // what to do
	Stderr []string // the last lines that the plugin wrote
	Cause  error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sink plugin %q (%s)", e.Plugin, e.Path)
	if e.Call != "" {
		fmt.Fprintf(&b, ", %s", e.Call)
	}
	fmt.Fprintf(&b, ": %v", e.Kind)
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if len(e.Stderr) > 0 {
		fmt.Fprintf(&b, "; its last words: %s", strings.Join(e.Stderr, " | "))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// Unwrap gives kind and cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
