// Package interrupts catches Ctrl-C and its relatives from the first milliseconds of a process on. Packages are initialised in the order of their paths as
// far as their imports allow, and some that the command needs take a hundred milliseconds: a signal in that time would kill the process instead of cancelling its
// work. So this package imports nothing but the standard library, and a main imports it.
package interrupts

import (
	"os"
	"os/signal"
	"syscall"
)

// C receives the signals of this process, those before main included.
var C = listen()

func listen() <-chan os.Signal {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return c
}
