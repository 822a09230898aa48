package flightsql

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// sent are messages as a stream gives them.
type sent struct{ all []*flight.FlightData }

func (s *sent) Send(m *flight.FlightData) error {
	s.all = append(s.all, proto.Clone(m).(*flight.FlightData))
	return nil
}

func (s *sent) Recv() (*flight.FlightData, error) {
	if len(s.all) == 0 {
		return nil, io.EOF
	}
	m := s.all[0]
	s.all = s.all[1:]
	return m, nil
}

func encoded(t testing.TB, schema *arrow.Schema, json string, opts ...ipc.Option) *sent {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json))
	require.NoError(t, err)
	defer rec.Release()
	s := &sent{}
	w := flight.NewRecordWriter(s, append(opts, ipc.WithSchema(schema))...)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return s
}

// spooled puts a stream into a file, as an ingest does.
func spooled(t testing.TB, in *upload) (rows int64, err error) {
	t.Helper()
	defer in.close()
	schema, err := in.schema()
	if err != nil || schema == nil {
		return 0, err
	}
	cols, err := columnsOf(schema, nil)
	if err != nil {
		return 0, err
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "spool"))
	require.NoError(t, err)
	defer f.Close()
	sp, err := newSpool(f, cols)
	if err != nil {
		return 0, err
	}
	if err := in.each(sp.write); err != nil {
		return 0, err
	}
	return sp.rows, sp.close()
}

// Whatever the messages of an upload are: it ends, with rows or with the client's mistake.
func FuzzUpload_AnyBytes(f *testing.F) {
	schemas := []*arrow.Schema{
		arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil),
		arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true}, {Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.Binary, Nullable: true}), Nullable: true}}, nil),
		arrow.NewSchema([]arrow.Field{{Name: "id", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.StringView, Nullable: true}}, nil),
	}
	for i, json := range []string{`[{"id":1,"s":"x"},{"id":null,"s":null}]`, `[{"id":[1,null],"s":{"a":"AAE="}},{"id":null,"s":null}]`, `[{"id":"1.5","s":"a text of more than twelve bytes"},{"id":null,"s":null}]`} {
		for _, opts := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
			s := encoded(f, schemas[i], json, opts...)
			require.Len(f, s.all, 2)
			f.Add(s.all[0].DataHeader, s.all[1].DataHeader, s.all[1].DataBody)
		}
	}
	tm, err := parseTemplate("INSERT INTO t VALUES (?, ?)")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, header, batch, body []byte) {
		in := func() *upload {
			m := []*flight.FlightData{{DataHeader: header}, {DataHeader: batch, DataBody: body}}
			return &upload{stream: &sent{m}, limit: 16 << 20}
		}
		for _, err := range []error{second(spooled(t, in())), second(tm.readBinding(in()))} {
			if c := status.Code(err); c != codes.OK && c != codes.InvalidArgument && c != codes.ResourceExhausted {
				t.Errorf("%s: %v", c, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Every form that a column may come in is stored.
func TestSpool_RowsAndRowGroups(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "n", Type: arrow.Null, Nullable: true}}, nil)
	n, err := spooled(t, &upload{stream: encoded(t, schema, `[{"id":1,"n":null},{"id":null,"n":null}]`), limit: 1 << 20})
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	_, err = spooled(t, &upload{stream: &sent{}, limit: 1 << 20})
	require.Error(t, err)
}
