package sdk

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// References hold what was staged, in order, and none of them grows with the job.
func TestStageFiles_AndBack(t *testing.T) {
	resp, err := StageFiles(source(script([]int{0, 1, 2 * filesInRef})))
	require.NoError(t, err)
	require.Len(t, resp.GetRefs(), 3)
	for _, ref := range resp.GetRefs() {
		require.Less(t, len(ref.GetData()), 30<<10)
		require.Empty(t, ref.GetObjects())
	}
	files, markers, err := StagedFiles([]*sinkv1.Unit{{Marker: "a", Refs: resp.GetRefs()[:1]}, {Marker: "b", Refs: resp.GetRefs()[1:]}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, markers)
	require.Len(t, files, 1+2*filesInRef)
	require.Equal(t, "1-0", files[0].GetUri())
	require.Equal(t, "2-1999", files[2*filesInRef].GetUri())
	require.EqualValues(t, 3, files[0].GetRecordCount())
	require.EqualValues(t, 5, files[0].GetSizeBytes())
}

func TestStagedFiles_Edges(t *testing.T) {
	files, markers, err := StagedFiles(nil)
	require.NoError(t, err)
	require.NotNil(t, files, "JSON would say null")
	require.NotNil(t, markers)
	_, _, err = StagedFiles([]*sinkv1.Unit{{JobId: "j", Refs: []*sinkv1.StagedRef{{Data: []byte("metadata/1.avro")}}}})
	require.ErrorContains(t, err, "a staged reference of job j is not one of StageFiles")
	_, err = StageFiles(source(script([]int{3})[:2]))
	require.ErrorIs(t, err, ErrManifest)
}

func TestNumberFields(t *testing.T) {
	element := &planv1.Field{Name: "element"}
	s := &planv1.Schema{Fields: []*planv1.Field{{Name: "tags", Type: &planv1.Type{Fields: []*planv1.Field{element}}}, {Name: "id"}}}
	NumberFields(s)
	require.EqualValues(t, []int32{1, 2, 3}, []int32{s.Fields[0].Id, element.Id, s.Fields[1].Id})
}
