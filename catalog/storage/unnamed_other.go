//go:build !linux

package storage

import "os"

// unnamed exists on Linux only.
type unnamed struct{ *os.File }

func newUnnamed(*os.Root, string) (*unnamed, error) { return nil, nil }

func (u *unnamed) link(string) error { return os.ErrInvalid }

func (u *unnamed) close() error { return os.ErrInvalid }
