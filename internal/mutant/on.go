//go:build mutant

package mutant

import "os"

var alive = os.Getenv("SIGNET_MUTANT")

// On tells whether the named mutant lives.
func On(name string) bool { return alive == name }
