package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
	"github.com/signet-io/signet/plugins/sinktest"
)

func TestConformance(t *testing.T) { sinktest.Run(t, sinktest.InProcess(hive{})) }

func TestPartitionText(t *testing.T) {
	kind := func(k planv1.TypeKind) *planv1.PartitionField {
		return &planv1.PartitionField{Name: "a/b", ResultType: &planv1.Type{Kind: k}}
	}
	text := func(s string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
	number := func(n int64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}} }
	for _, c := range []struct {
		want  string
		kind  planv1.TypeKind
		value *planv1.Value
	}{
		{nullPartition, planv1.TypeKind_TYPE_KIND_STRING, &planv1.Value{}},
		{"", planv1.TypeKind_TYPE_KIND_STRING, text("")},
		{"x%2F..%2F%C3%A9=%25", planv1.TypeKind_TYPE_KIND_STRING, text("x/../é=%")},
		{"-7", planv1.TypeKind_TYPE_KIND_INT64, number(-7)},
		{"1969-12-31", planv1.TypeKind_TYPE_KIND_DATE, number(-1)},
		{"true", planv1.TypeKind_TYPE_KIND_BOOLEAN, &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}},
	} {
		got, err := partitionText([]*planv1.PartitionField{kind(c.kind)}, []*planv1.Value{c.value})
		require.NoError(t, err)
		require.Equal(t, "a%2Fb="+c.want, got)
	}
	_, err := partitionText(nil, []*planv1.Value{number(1)})
	require.ErrorContains(t, err, "1 partition values, the table 0")
}

func TestPartitionFields_OnlyWhatHasOneText(t *testing.T) {
	def := func(column string, transform planv1.TransformKind) *sinkv1.TableDefinition {
		return &sinkv1.TableDefinition{
			Schema: &planv1.Schema{Fields: []*planv1.Field{
				{Id: 1, Name: "day", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DATE}}, {Id: 2, Name: "x", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT64}},
			}},
			Partition: []*sinkv1.PartitionClause{{Column: column, Transform: transform}},
		}
	}
	fields, err := partitionFields(def("day", planv1.TransformKind_TRANSFORM_KIND_IDENTITY))
	require.NoError(t, err)
	require.Len(t, fields, 1)
	require.EqualValues(t, 1, fields[0].GetSourceId())
	for _, d := range []*sinkv1.TableDefinition{
		def("x", planv1.TransformKind_TRANSFORM_KIND_IDENTITY), def("day", planv1.TransformKind_TRANSFORM_KIND_YEAR), def("gone", planv1.TransformKind_TRANSFORM_KIND_IDENTITY),
	} {
		_, err := partitionFields(d)
		require.ErrorContains(t, err, "Hive's partitions are columns of type")
	}
}

// What an overwrite keeps, and which markers stay.
func TestFollow(t *testing.T) {
	head := &success{Version: version(4), Files: []dataFile{{Path: "1", Partition: "p=1"}, {Path: "2", Partition: "p=2"}}}
	for i := range 300 {
		head.Landed = append(head.Landed, landed{Marker: fmt.Sprint("m", i), Version: version(i)})
	}
	commit := func(mode sinkv1.WriteMode, scope *planv1.Scope) *success {
		return head.follow([]dataFile{{Path: "3", Partition: "p=2"}}, &sinkv1.CommitRequest{
			Mode: mode, Spec: &planv1.WriteSpec{Scope: scope}, Units: []*sinkv1.Unit{{Marker: "new"}}, KeepMarkers: []string{"m3"},
		})
	}
	files := func(s *success) (out []string) {
		for _, f := range s.Files {
			out = append(out, f.Path)
		}
		return out
	}
	appended := commit(sinkv1.WriteMode_WRITE_MODE_APPEND, nil)
	require.Equal(t, []string{"1", "2", "3"}, files(appended))
	require.Equal(t, version(5), appended.Version)
	require.Equal(t, version(5), appended.find("new"))
	require.Equal(t, version(3), appended.find("m3"), "the host asked to keep it")
	require.Equal(t, version(44), appended.find("m44"))
	require.Empty(t, appended.find("m43"))
	require.Len(t, appended.Landed, keptMarkers+2)
	require.Equal(t, []string{"3"}, files(commit(sinkv1.WriteMode_WRITE_MODE_OVERWRITE, &planv1.Scope{Kind: &planv1.Scope_All{All: true}})))
	require.Equal(t, []string{"1", "3"}, files(commit(sinkv1.WriteMode_WRITE_MODE_OVERWRITE, &planv1.Scope{Kind: &planv1.Scope_Partitions{Partitions: true}})))
	require.Equal(t, version(0), (&success{}).follow(nil, &sinkv1.CommitRequest{Units: []*sinkv1.Unit{{}}}).Version)
}

// _SUCCESS may be behind, missing or damaged: the newest commit counts, and nothing is taken for it that is none.
func TestLoad_ThePointerIsAHint(t *testing.T) {
	h := sinktest.NewHost("file:///warehouse/ns/t")
	client := sdktest.NewTestConn(t, hive{}, h.Register)
	ref := &sinkv1.TableRef{Namespace: []string{"ns"}, Name: "t"}
	_, err := client.CreateTable(t.Context(), &sinkv1.CreateTableRequest{Lease: h.Lease, Table: ref, Definition: &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{
		{Name: "id", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}},
	}}}})
	require.NoError(t, err)
	for i := range 3 {
		h.Put(h.Location+"/"+path(version(i)), fmt.Appendf(nil, `{"version": %q}`, version(i)))
	}
	newest := func() (string, error) {
		r, err := client.DescribeTable(context.Background(), &sinkv1.DescribeTableRequest{Lease: h.Lease, Table: ref})
		return r.GetVersion(), err
	}
	for _, hint := range []string{"", `{"version": "` + version(0) + `"}`, `{"version": "` + version(2) + `"}`} {
		if hint != "" {
			h.Put(h.Location+"/_SUCCESS", []byte(hint))
		}
		got, err := newest()
		require.NoError(t, err)
		require.Equal(t, version(2), got)
	}
	for _, hint := range []string{`{"version": "` + version(7) + `"}`, `{"version": "1"}`, `{"version": "../x"}`, `{`} {
		h.Put(h.Location+"/_SUCCESS", []byte(hint))
		_, err := newest()
		require.Error(t, err, hint)
	}
}
