package tableprops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/tableprops"
)

func TestReserved(t *testing.T) {
	for key, want := range map[string]bool{
		"signet.landed.x": true, "Signet.landed.x": true, "signet.": true, "SIGNET.splice.enabled": true, "signet.splice.enabled": false,
		"signet.accept-any-schema": false, "signet.maintenance.expire-snapshots": false, "signet.maintenance.other": true, "write.format.default": false, "signe": false,
	} {
		require.Equal(t, want, tableprops.Reserved(key), key)
	}
}
