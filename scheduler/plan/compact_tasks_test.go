package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func compactSchema() *planv1.Schema {
	return &planv1.Schema{Fields: []*planv1.Field{
		{Id: 1, Name: "id", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}},
		{Id: 2, Name: "Name", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}},
		{Id: 3, Name: "l", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Id: 4, Name: "element", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}}}}},
	}}
}

func TestParseOrder(t *testing.T) {
	got, err := ParseOrder("id DESC NULLS LAST, truncate(4, name)", compactSchema())
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.EqualValues(t, 1, got[0].SourceId)
	require.True(t, got[0].Descending)
	require.False(t, got[0].NullsFirst)
	require.EqualValues(t, 2, got[1].SourceId)
	require.Equal(t, planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, got[1].Transform)
	for _, bad := range []string{"", "nope", "id id", "id) WITH ('a' = 'b'", "zorder(id, name)", "l", "1", "id; DROP TABLE t", "year(name)"} {
		_, err := ParseOrder(bad, compactSchema())
		require.Error(t, err, bad)
		var e *Error
		require.ErrorAs(t, err, &e, bad)
	}
}

func TestParseFilter(t *testing.T) {
	p, err := ParseFilter("id > 3 AND name IN ('a', 'b')", compactSchema(), "t")
	require.NoError(t, err)
	require.Len(t, p.GetAll().GetTerms(), 2)
	for _, bad := range []string{"", "id >", "nope = 1", "id + 1 = 2", "id = 1) OR (1 = 1", "id = 1; SELECT 1"} {
		_, err := ParseFilter(bad, compactSchema(), "t")
		require.Error(t, err, bad)
	}
}

func TestCompactTasks_SmallGroupsShareATask(t *testing.T) {
	file := func(name string, size int64) *planv1.PinnedFile {
		return &planv1.PinnedFile{Name: name, Path: "/" + name, SizeBytes: size, RecordCount: 1}
	}
	c := &CompactTasks{
		Table: "t", Spec: &planv1.WriteSpec{Schema: compactSchema(), BaseVersion: "7", SinkState: []byte("x"), FormatVersion: 3}, Lineage: true,
		Target: &planv1.TableScan{Schema: compactSchema(), Table: "t", WithPositions: true, RowLineage: true}, Limit: 100, Mode: Static,
		Groups: [][]*planv1.PinnedFile{{file("a", 40), file("b", 40)}, {file("c", 20)}, {file("d", 30)}, {file("e", 500)}},
	}
	p, err := c.Planner()
	require.NoError(t, err)
	batch, err := p.Next(nil)
	require.NoError(t, err)
	var got [][]string
	for _, st := range batch.Stages {
		for _, task := range st.fixed {
			var names []string
			scan := task.Sources[0].GetTable()
			for _, f := range scan.Files {
				names = append(names, f.Name)
			}
			got = append(got, names)
			require.True(t, scan.WithPositions && scan.RowLineage)
			w := task.GetWrite()
			require.Equal(t, TargetView, w.Rewrite.View)
			require.Empty(t, w.Rewrite.ChangesSql, "every file is replaced")
			require.Empty(t, w.Spec.SinkState)
			require.True(t, w.RowLineage)
			require.Contains(t, task.Sql, "_row_id, _last_updated_sequence_number")
		}
	}
	require.Equal(t, [][]string{{"a", "b", "c"}, {"d"}, {"e"}}, got)
	require.Len(t, c.Reads().Files, 5)
	require.Contains(t, p.Plan().Explain(), "planned on version 7")
}

// signet.max_tasks bounds the tasks of a compaction as those of a query.
func TestCompactTasks_AtMostAsManyAsAreAllowed(t *testing.T) {
	var shares [][]*planv1.PinnedFile
	for i := range 7 {
		shares = append(shares, []*planv1.PinnedFile{{Name: string(rune('a' + i))}})
	}
	for most, want := range map[int]int{0: 7, 1: 1, 3: 3, 6: 6, 7: 7, 100: 7} {
		var names string
		got := fewer(shares, most)
		for _, share := range got {
			require.NotEmpty(t, share)
			for _, f := range share {
				names += f.Name
			}
		}
		require.Len(t, got, want)
		require.Equal(t, "abcdefg", names)
	}
}
