package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// InTerminal and ErrTerminal say whether a person is at the other end.
	InTerminal, ErrTerminal bool
	// Width is the terminal's, asked for at each repaint.
	Width func() int
}

// System are the process's own streams.
func System() Streams {
	fd := int(os.Stderr.Fd())
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: term.IsTerminal(int(os.Stdin.Fd())), ErrTerminal: term.IsTerminal(fd) && os.Getenv("TERM") != "dumb",
		Width: func() int {
			if w, _, err := term.GetSize(fd); err == nil {
				return w
			}
			return 80
		},
	}
}
