package catalogtest

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// readFile reads a file of a table, wherever it lies.
func readFile(t *testing.T, c catalog.Catalog, tbl *catalog.Table, uri string) string {
	t.Helper()
	st, err := c.Store(t.Context(), tbl.Ident, tbl.Location)
	require.NoError(t, err)
	o, err := st.Open(t.Context(), uri)
	require.NoError(t, err)
	defer o.Close()
	b, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	require.NoError(t, err)
	return string(b)
}

// metadataFiles counts a table's metadata files. Nothing else is beside them.
func metadataFiles(t *testing.T, c catalog.Catalog, tbl *catalog.Table) int {
	t.Helper()
	st, err := c.Store(t.Context(), tbl.Ident, tbl.Location)
	require.NoError(t, err)
	n := 0
	require.NoError(t, st.List(t.Context(), tbl.Location+"/metadata", func(i storage.Info) error {
		assert.True(t, strings.HasSuffix(i.URI, ".metadata.json"), i.URI)
		n++
		return nil
	}))
	return n
}
