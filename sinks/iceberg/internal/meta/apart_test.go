package meta

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func history(n int) string {
	var list, log []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"l%d","summary":{"operation":"append","t":"]},{\"x"}}`, i+1, i+1, i+1, i+1))
		log = append(log, fmt.Sprintf(`{"snapshot-id":%d,"timestamp-ms":%d}`, i+1, i+1))
	}
	return fmt.Sprintf(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"file:///t/","last-sequence-number":%d,"last-updated-ms":%d,
		"current-schema-id":0,"schemas":[{"schema-id":0,"type":"struct","fields":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],
		"properties":{"a":"b"},"current-snapshot-id":%d,"snapshots":[%s],"snapshot-log":[%s],"metadata-log":[],"statistics":[],
		"refs":{"main":{"snapshot-id":%d,"type":"branch"}}}`, n, n, n, strings.Join(list, ","), strings.Join(log, " , "), n)
}

// A document is read as the decoder reads it, with its snapshots apart.
func TestParse_Apart(t *testing.T) {
	raw := []byte(history(50))
	var apart, whole jsonMetadata
	require.True(t, apart.unmarshalApart(raw))
	require.NoError(t, json.Unmarshal(raw, &whole))
	require.Equal(t, whole, apart)
	m, err := Parse(raw)
	require.NoError(t, err)
	for _, id := range []int64{1, 25, 50} {
		s, err := m.Snapshot(id)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("l", id), s.ManifestList)
	}
	head, err := m.Head()
	require.NoError(t, err)
	require.EqualValues(t, 50, head.ID)
	require.Equal(t, `]},{"x`, head.Summary["t"])
}

// Documents that are unusual are decoded whole, and mean the same.
func TestParse_UnusualDocumentsAreDecodedWhole(t *testing.T) {
	raw := history(3)
	for what, doc := range map[string]string{
		"another case":     strings.Replace(raw, `"snapshots"`, `"Snapshots"`, 1),
		"an escaped name":  strings.Replace(raw, `"snapshots"`, `"snapshot\u0073"`, 1),
		"a member twice":   strings.Replace(raw, `"properties"`, `"properties":{"a":"c"},"properties"`, 1),
		"a known one else": strings.Replace(raw, `"location"`, `"LOCATION"`, 1),
	} {
		var apart jsonMetadata
		require.False(t, apart.unmarshalApart([]byte(doc)), what)
		m, err := Parse([]byte(doc))
		require.NoError(t, err, what)
		require.Equal(t, "b", m.Properties["a"], what)
		head, err := m.Head()
		require.NoError(t, err, what)
		require.EqualValues(t, 3, head.ID, what)
	}
	for _, doc := range []string{"", "[]", "{", raw[:len(raw)-1], raw + "}", strings.Replace(raw, `"snapshots":[`, `"snapshots":[,`, 1)} {
		_, err := Parse([]byte(doc))
		require.ErrorIs(t, err, ErrInvalid)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000} {
		raw := []byte(history(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				m, err := Parse(raw)
				require.NoError(b, err)
				_, err = m.Head()
				require.NoError(b, err)
			}
		})
	}
}
