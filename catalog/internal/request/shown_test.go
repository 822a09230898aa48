package request

import (
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
)

func TestRequest_Shown(t *testing.T) {
	const (
		fields = `{"id":1,"name":"id","required":true,"type":"long"}`
		add    = `{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[` + fields + `,{"id":2,"name":"more","required":false,"type":"int"}]},"last-column-id":2},{"action":"set-current-schema","schema-id":-1}`
		other  = `{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[` + fields + `,{"id":2,"name":"other","required":false,"type":"int"}]},"last-column-id":2},{"action":"set-current-schema","schema-id":-1}`
	)
	base, err := NewMetadata(catalog.CreateSpec{Schema: []byte(`{"type":"struct","schema-id":0,"fields":[` + fields + `]}`), Properties: map[string]string{"a": "1"}}, "file:///t")
	require.NoError(t, err)
	apply := func(meta table.Metadata, updates string) table.Metadata {
		r, err := Parse([]byte(`[]`), []byte(`[`+updates+`]`))
		require.NoError(t, err)
		u, err := r.Updates()
		require.NoError(t, err)
		next, err := table.UpdateTableMetadata(meta, u, "file:///t/metadata/x.json")
		require.NoError(t, err)
		return next
	}
	now := apply(base, add)
	for updates, want := range map[string]bool{
		add:   true,
		other: false,
		`{"action":"set-current-schema","schema-id":1}`:   true,
		`{"action":"set-current-schema","schema-id":0}`:   false,
		`{"action":"set-current-schema","schema-id":77}`:  false,
		`{"action":"set-properties","updates":{"a":"1"}}`: true,
		`{"action":"set-properties","updates":{"a":"2"}}`: false,
		`{"action":"remove-properties","removals":["b"]}`: true,
	} {
		r, err := Parse([]byte(`[]`), []byte(`[`+updates+`]`))
		require.NoError(t, err)
		shown, reason := r.Shown(now)
		assert.Equal(t, want, shown, "%s: %v", updates, reason)
	}
}
