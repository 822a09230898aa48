package flightrows

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
)

func TestEachPiece_IsSmallEnoughAndWhole(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range 1000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		n := 1000
		if i == 500 {
			n = 3 * maxBatch
		}
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", n))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var next int64
	require.NoError(t, EachPiece(rec, func(p arrow.RecordBatch) error {
		ids := p.Column(0).(*array.Int64)
		for i := range ids.Len() {
			require.Equal(t, next, ids.Value(i))
			next++
		}
		require.True(t, p.NumRows() == 1 || rangeSize(p, 0, p.NumRows()) <= maxBatch)
		return nil
	}))
	require.EqualValues(t, 1000, next)
}

func TestTicket_ComesBackAsItWas(t *testing.T) {
	for _, want := range []Ticket{{Sealed: []byte("s")}, {Sealed: []byte{}}, {Sealed: []byte("sealed\x00"), Attempt: "a-1", Secret: "s"}, {Sealed: []byte{}, Attempt: "a", Secret: "s"}} {
		got, err := Decode(want.Encode())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range [][]byte{nil, {2}, {formKept}, {formKept, 0x80}, {formKept, 200, 1}, {formKept, 1, 'x'}, {formKept, 0, 'a'}, {formKept, 0, 'a', 0}, {formKept, 0, 0, 's'}} {
		_, err := Decode(bad)
		require.ErrorIs(t, err, ErrTicket, "%v", bad)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("x"))
	f.Add(Ticket{Sealed: []byte("s"), Attempt: "a", Secret: "t"}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(got.Encode())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func TestShown_BearerAndBasic(t *testing.T) {
	for header, want := range map[string][3]any{
		"Bearer abc":    {"", "abc", false},
		"bearer  abc ":  {"", "abc", false},
		"Basic dTpw":    {"u", "p", true},
		"basic dTpwOng": {"u", "p:x", true}, // without padding
		"Basic !":       {"", "", true},
		"Basic dQ==":    {"u", "", true},
		"Digest abc":    {"", "", false},
		"Bearer":        {"", "", false},
		"":              {"", "", false},
	} {
		user, token, basic := Shown(metadata.Pairs("authorization", header))
		require.Equal(t, want, [3]any{user, token, basic}, header)
	}
	_, token, _ := Shown(metadata.Pairs("authorization", "Bearer a", "authorization", "Bearer b"))
	require.Empty(t, token, "two are none")
	_, token, _ = Shown(nil)
	require.Empty(t, token)
}
