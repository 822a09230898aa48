//go:build !linux

package sinktest

import "errors"

type proc struct{ pid int }

func (p proc) alive() bool { return false }

func descendants(int) []proc { return nil }

type footprint struct {
	files, processes int
	memory, peak     int64
}

var errNoProc = errors.New("this system has no /proc")

func measure(int) (footprint, error) { return footprint{}, errNoProc }

func visible(int) ([]string, error) { return nil, errNoProc }

func stat(int) (proc, int, string, error) { return proc{}, 0, "", errNoProc }
