package storage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
)

func TestUnescapeSegment_IsTheInverseOfEscapeSegment(t *testing.T) {
	for _, name := range []string{"plain", "we ird", "x/..", "größe", "日本", "~", "~~", "a.b", `a"b`, "\x00\xff", "100%"} {
		require.Equal(t, name, storage.UnescapeSegment(storage.EscapeSegment(name)), name)
	}
	for _, other := range []string{"a b", "a~", "a~2", "a~zz", "a~41", "a~2F", "x~~0123456789abcdef"} {
		require.Equal(t, other, storage.UnescapeSegment(other), "not made by EscapeSegment")
	}
}
