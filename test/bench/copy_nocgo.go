//go:build !cgo

package main

import (
	"context"
	"errors"
)

func copyOnce(context.Context, string, string, string, bool, int, string) error {
	return errors.New("the baseline is DuckDB: build with CGO_ENABLED=1")
}
