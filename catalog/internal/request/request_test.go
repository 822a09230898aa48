package request

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
)

func TestRequest_FollowsOneVersionOfTheMetadata(t *testing.T) {
	const big = `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1887640396005674367}`
	r, err := Parse([]byte(`[`+big+`,{"type":"assert-metadata-location","metadata-location":"file:///a"}]`), []byte(`[]`))
	require.NoError(t, err)
	require.Len(t, r.requirements, 1)
	b, err := json.Marshal(r.requirements[0])
	require.NoError(t, err)
	require.JSONEq(t, big, string(b))
	require.NoError(t, r.Follows("file:///a"))
	require.ErrorIs(t, r.Follows("file:///b"), catalog.ErrConflict)
	for _, bad := range []string{
		`[{"type":"assert-metadata-location"}]`, `[{"type":"assert-metadata-location","metadata-location":7}]`, `{"assert-metadata-location":1}`,
		`[{"type":"assert-metadata-location","metadata-location":"a"},{"type":"assert-metadata-location","metadata-location":"b"}]`,
	} {
		_, err := Parse([]byte(bad), []byte(`[]`))
		require.ErrorIs(t, err, catalog.ErrPermanent, bad)
	}
	r, err = Parse([]byte(`[]`), []byte(`[]`))
	require.NoError(t, err)
	require.NoError(t, r.Follows("file:///b"))
}
