package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTidyBelow(t *testing.T) {
	for location, want := range map[string]string{
		"file:///w/ns/t/data": "file:///w/ns", "file:///w/t/data": "file:///w", "file:///w/fast": "file:///w", "file:///w": "file:///w",
		"file:///fast/t": "file:///fast/t", "/w/ns/t/data/": "/w/ns",
	} {
		require.Equal(t, want, tidyBelow("file:///w", location), location)
	}
}
