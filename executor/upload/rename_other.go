//go:build !linux

package upload

import "os"

// renameNew gives a file its name, unless the name is taken.
func renameNew(from, to string) error { return os.Link(from, to) }
