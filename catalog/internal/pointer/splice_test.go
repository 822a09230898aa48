package pointer

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/rawjson"
)

// emptyVersion is a table without snapshots.
func emptyVersion(t *testing.T, format int, props iceberg.Properties) *version {
	t.Helper()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	props["format-version"] = fmt.Sprint(format)
	meta, err := table.NewMetadata(schema, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file:///wh/t", props)
	require.NoError(t, err)
	require.Equal(t, format, meta.Version())
	raw, err := encode(meta)
	require.NoError(t, err)
	return &version{location: "file:///wh/t/metadata/00000-a.metadata.json", raw: raw, meta: meta}
}

func spliceRequest(t *testing.T, base *version, n int, more ...map[string]any) *request.Request {
	t.Helper()
	snap := map[string]any{
		"snapshot-id": 1000 + n, "sequence-number": base.meta.LastSequenceNumber() + 1, "timestamp-ms": time.Now().UnixMilli(), "schema-id": 0,
		"manifest-list": fmt.Sprintf("file:///wh/t/metadata/snap-%d.avro", n), "summary": map[string]string{"operation": "append", "text": "quoted \" [,] {"},
	}
	if now := base.meta.CurrentSnapshot(); now != nil {
		snap["parent-snapshot-id"] = now.SnapshotID
	}
	if base.meta.Version() >= 3 {
		snap["first-row-id"], snap["added-rows"] = base.meta.NextRowID(), 7
	}
	updates := append([]map[string]any{{"action": "add-snapshot", "snapshot": snap}}, more...)
	b, err := json.Marshal(updates)
	require.NoError(t, err)
	r, err := request.Parse([]byte("[]"), b)
	require.NoError(t, err)
	return r
}

func setRef(name string, n int) map[string]any {
	return map[string]any{"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": 1000 + n}
}

// However many snapshots are appended, what is spliced is what would have been encoded.
func TestSplice_IsWhatWouldBeEncoded(t *testing.T) {
	for _, format := range []int{2, 3} {
		base := emptyVersion(t, format, iceberg.Properties{"write.metadata.previous-versions-max": "5"})
		for n := range 12 {
			more := []map[string]any{setRef("main", n), {"action": "set-properties", "updates": map[string]string{"landed": fmt.Sprint("m", n, ":\"")}}}
			switch n % 4 {
			case 1:
				more = append(more, setRef("audit", n))
			case 2:
				more = more[:1]
			case 3:
				more = []map[string]any{setRef("audit", n)} // main stays where it is
			}
			req := spliceRequest(t, base, n, more...)
			meta, err := applyTo(base, req)
			require.NoError(t, err)
			got, ok := splice(base, meta, req)
			require.True(t, ok)
			want, err := encode(meta)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got), "commit %d", n)
			again, err := table.ParseMetadataBytes(got)
			require.NoError(t, err)
			require.True(t, again.Equals(meta))
			base = &version{location: fmt.Sprintf("file:///wh/t/metadata/%05d-a.metadata.json", n+1), raw: got, meta: meta}
		}
	}
}

// What other engines have written, and this version does not know of, stays as it is.
func TestSplice_KeepsWhatItDoesNotKnow(t *testing.T) {
	base := emptyVersion(t, 2, iceberg.Properties{})
	req := spliceRequest(t, base, 0, setRef("main", 0))
	meta, err := applyTo(base, req)
	require.NoError(t, err)
	raw, ok := splice(base, meta, req)
	require.True(t, ok)
	members, err := rawjson.Object(raw)
	require.NoError(t, err)
	for i, m := range members {
		if m.Key == "snapshots" {
			members[i].Value = []byte(`[ {"snapshot-id":1000,"sequence-number":1,"timestamp-ms":` + fmt.Sprint(meta.LastUpdatedMillis()) +
				`,"manifest-list":"l","summary":{"operation":"append"},"schema-id":0,"from-the-future":{"a":[1]}} ]`)
		}
	}
	members = append(members, rawjson.Member{Key: "from-the-future", Value: []byte(`{"b":"]"}`)})
	base = &version{location: "file:///wh/t/metadata/00001-a.metadata.json", raw: rawjson.AppendObject(nil, members)}
	base.meta, err = table.ParseMetadataBytes(base.raw)
	require.NoError(t, err)
	req = spliceRequest(t, base, 1, setRef("main", 1))
	meta, err = applyTo(base, req)
	require.NoError(t, err)
	raw, ok = splice(base, meta, req)
	require.True(t, ok)
	require.Contains(t, string(raw), `"from-the-future":{"a":[1]}`)
	require.Contains(t, string(raw), `"from-the-future":{"b":"]"}`)
	again, err := table.ParseMetadataBytes(raw)
	require.NoError(t, err)
	require.True(t, again.Equals(meta))
}

// Whatever is more than one more snapshot is encoded anew.
func TestSplice_LeavesTheRestToTheEncoder(t *testing.T) {
	base := emptyVersion(t, 2, iceberg.Properties{})
	for what, more := range map[string][]map[string]any{
		"a column":         {setRef("main", 0), {"action": "set-location", "location": "file:///wh/u"}},
		"no snapshot":      nil,
		"a branch is gone": {setRef("main", 0), setRef("b", 0), {"action": "remove-snapshot-ref", "ref-name": "b"}},
	} {
		req := spliceRequest(t, base, 0, more...)
		if more == nil {
			var err error
			req, err = request.Parse([]byte("[]"), []byte(`[{"action":"set-properties","updates":{"a":"b"}}]`))
			require.NoError(t, err)
		}
		meta, err := applyTo(base, req)
		require.NoError(t, err, what)
		_, ok := splice(base, meta, req)
		require.False(t, ok, what)
	}
	req := spliceRequest(t, base, 0, setRef("main", 0))
	meta, err := applyTo(base, req)
	require.NoError(t, err)
	_, ok := splice(&version{location: base.location, meta: base.meta, raw: []byte(`{"snapshots":[],"snapshots":[]}`)}, meta, req)
	require.False(t, ok, "an unusual document")
	one := emptyVersion(t, 1, iceberg.Properties{})
	req = spliceRequest(t, one, 0, setRef("main", 0))
	if meta, err = applyTo(one, req); err == nil {
		_, ok = splice(one, meta, req)
		require.False(t, ok, "format version 1")
	}
}
