package iceberg

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The UUID that a catalog has put into a place is the table's; what only looks like one is not taken.
func TestNewUUID(t *testing.T) {
	const id = "5f8ef2b6-cd79-4f7a-847a-31a7d34ec082"
	for location, want := range map[string]string{
		"s3://warehouse/demo/u-" + id: id, "s3://warehouse/demo/u_" + id: id, "s3://warehouse/" + id: id,
		"s3://warehouse/demo/u": "", "s3://warehouse/demo/u-5f8ef2b6": "", "s3://w/demo/u" + id: "", id: "", "": "",
		"s3://warehouse/demo/u-5f8ef2b6-cd79-4f7a-847a-31a7d34ec08x": "",
		"s3://warehouse/demo/u-00000000-0000-0000-0000-000000000000": "",
		"s3://warehouse/demo/u-" + id + "-0a1b2c3d":                  "",
	} {
		got, err := newUUID(location, "u")
		require.NoError(t, err)
		require.Len(t, got, 36, location)
		named, err := newUUID(location, "t-"+id)
		require.NoError(t, err)
		require.NotEqual(t, id, named, "it is the name's")
		if want != "" {
			require.Equal(t, want, got)
		} else {
			again, err := newUUID(location, "u")
			require.NoError(t, err)
			require.NotEqual(t, got, again, location)
			require.NotEqual(t, id, got)
		}
	}
}
