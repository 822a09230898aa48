package avro

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const joinSchema = `{"type":"record","name":"r","fields":[{"name":"n","type":"long","field-id":1}]}`

func containerOf(t *testing.T, content string, numbers ...int64) []byte {
	t.Helper()
	w, err := NewWriter(joinSchema, []KV{{"content", content}})
	require.NoError(t, err)
	for _, n := range numbers {
		require.NoError(t, w.Done(AppendLong(w.Row(), n)))
	}
	b, err := w.Bytes()
	require.NoError(t, err)
	return append([]byte{}, b...)
}

func TestJoin_KeepsTheRecordsInOrder(t *testing.T) {
	joined, rows, err := Join([][]byte{containerOf(t, "data", 1, 2), containerOf(t, "data"), containerOf(t, "data", 3)})
	require.NoError(t, err)
	require.EqualValues(t, 3, rows)
	f, err := Open(joined)
	require.NoError(t, err)
	require.Equal(t, "data", f.Meta["content"])
	var got []any
	require.NoError(t, f.Records(func(r *Record) error {
		r.Each(func(_ int, v any) { got = append(got, v) })
		return nil
	}))
	require.Equal(t, []any{int64(1), int64(2), int64(3)}, got)
}

func TestJoin_RefusesWhatDoesNotFit(t *testing.T) {
	whole := containerOf(t, "data", 1, 2)
	_, _, err := Join([][]byte{whole, containerOf(t, "deletes", 3)})
	require.ErrorIs(t, err, ErrLayout)
	for n := range len(whole) { // cut anywhere, it is an error; or it has no block yet
		if _, rows, err := Join([][]byte{whole, whole[:n]}); err == nil {
			require.EqualValues(t, 2, rows)
		} else {
			require.ErrorIs(t, err, ErrFormat)
		}
	}
	bad := append([]byte{}, whole...)
	bad[len(bad)-1] ^= 1 // the sync marker behind the block
	_, _, err = Join([][]byte{bad})
	require.ErrorIs(t, err, ErrFormat)
}
