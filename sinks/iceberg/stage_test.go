package iceberg

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

func TestStage_RollsManifestsAtTheirSize(t *testing.T) {
	h := newHost(t, "roll")
	c := h.client(New())
	createTable(t, h, c, simple(map[string]string{propManifestSize: "20000"}))
	j := newJob(t, h, c)
	var groups [][]*planv1.DataFile
	for range 3 {
		groups = append(groups, j.manyFiles(1000))
	}
	j.land(groups...)
	require.Greater(t, len(j.refs), 2)
	require.EqualValues(t, 3000, j.totals.GetFiles())
	for i, r := range j.refs {
		require.Len(t, r.GetObjects(), 1)
		require.Regexp(t, "/n/roll/metadata/"+j.id+`-[0-9a-f]{16}-m\d+\.avro$`, r.GetObjects()[0])
		require.Equal(t, i == 0, strings.Contains(string(r.GetData()), `"first":true`))
	}
	require.Equal(t, "3000", h.table().CurrentSnapshot().Summary.Properties["added-data-files"])
	require.Equal(t, "1", h.table().CurrentSnapshot().Summary.Properties["changed-partition-count"])
}

// A large manifest is sent while it is made; what is there in the end is the same, also where the put fails on the way.
func TestStage_SendsManifestsEarly(t *testing.T) {
	for name, lost := range map[string]int{"sent": 0, "lost": 1} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, "early")
			c := h.client(earlySink{New()})
			createTable(t, h, c, simple(nil))
			h.beforePut = func(uri string) error {
				if lost > 0 && strings.HasSuffix(uri, "-m0.avro") {
					lost--
					return sdk.Refuse(sdk.Retryable, "%s is lost", uri)
				}
				return nil
			}
			j := newJob(t, h, c)
			j.land(j.manyFiles(3000))
			require.Zero(t, lost)
			require.Len(t, j.refs, 1)
			require.Equal(t, name == "lost", strings.HasSuffix(j.refs[0].GetObjects()[0], "-m1.avro"), "under another name")
			require.Equal(t, "3000", h.table().CurrentSnapshot().Summary.Properties["added-data-files"])
			n := 0
			for _, r := range j.refs {
				raw, err := os.ReadFile(h.path(r.GetObjects()[0]))
				require.NoError(t, err)
				require.NoError(t, icefile.ReadEntries(raw, false, func(*icefile.Entry) error { n++; return nil }))
			}
			require.Equal(t, 3000, n)
		})
	}
}

// earlySink sends in small pieces.
type earlySink struct{ *Sink }

func (earlySink) Stage(ctx context.Context, header *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	return stageIn(ctx, sdk.HostFrom(ctx), header, manifests, 1000)
}

func TestStage_IsIdempotentByContent(t *testing.T) {
	h := newHost(t, "again")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	j := newJob(t, h, c)
	files := j.write(row{vInt(1), vStr("x")})
	require.NoError(t, j.stage(files))
	require.NoError(t, j.stage(files), "after a crash of the plugin")
	require.Empty(t, j.refs[0].GetObjects(), "a small manifest is in its reference")
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
	readBack(t, h, 1)

	j = newJob(t, h, c)
	many := j.manyFiles(3000)
	require.NoError(t, j.stage(many))
	first := j.refs
	require.NoError(t, j.stage(many))
	require.NotEmpty(t, first[0].GetObjects())
	require.NotEqual(t, first[0].GetObjects(), j.refs[0].GetObjects())
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
}

// Numbers in docs/semantics.md: S69.
func TestStage_ComparesTheIDsBeforeAnyFile(t *testing.T) { // C26, S66
	h := newHost(t, "ids")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	for want, change := range map[string]func(*planv1.WriteSpec, *job){
		"schema 7":   func(s *planv1.WriteSpec, _ *job) { s.SchemaId = 7 },
		"spec 7":     func(s *planv1.WriteSpec, _ *job) { s.SpecId = 7 },
		"table not":  func(s *planv1.WriteSpec, _ *job) { s.TableUuid = "not" },
		"of job not": func(_ *planv1.WriteSpec, j *job) { j.id = "not" },
	} {
		j := newJob(t, h, c)
		f := j.plainFile(0, 1)
		f.Columns = []*planv1.ColumnMetrics{{FieldId: 99}} // would be refused, too
		good, id := j.spec, j.id
		lie := *j
		lie.spec = &planv1.WriteSpec{TableUuid: good.GetTableUuid(), SchemaId: good.GetSchemaId(), SpecId: good.GetSpecId()}
		change(lie.spec, &lie)
		err := stageWithHeader(j, id, lie.header(0), f)
		refused(t, err, sdk.Permanent, want, "task 0")
	}
	require.Empty(t, h.created())
}

// stageWithHeader stages one file under a task manifest header of its own.
func stageWithHeader(j *job, id string, header *planv1.ManifestHeader, f *planv1.DataFile) error {
	st, err := j.c.Stage(j.t.Context())
	require.NoError(j.t, err)
	for _, r := range []*sinkv1.StageRequest{
		{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{Table: j.h.ref(), Spec: j.spec, JobId: id}}},
		{Part: &sinkv1.StageRequest_Manifest{Manifest: &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: header}}}},
	} {
		_ = st.Send(r)
	}
	_ = f
	_, err = st.CloseAndRecv()
	return err
}

func TestStage_RefusesABadFileWithItsTask(t *testing.T) {
	h := newHost(t, "bad")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	j := newJob(t, h, c)
	twice := j.plainFile(1, 1)
	err := j.stage([]*planv1.DataFile{j.plainFile(0, 1)}, []*planv1.DataFile{twice, twice})
	refused(t, err, sdk.Permanent, "task 1", "comes twice", "c.n.bad") // C21
	f := j.plainFile(2, 1)
	f.Partition = []*planv1.Value{vInt(1)}
	refused(t, j.stage([]*planv1.DataFile{f}), sdk.Permanent, "1 partition values where the spec has 0")
	require.Empty(t, h.created())
}

func TestStage_RefusesAForeignState(t *testing.T) {
	h := newHost(t, "state")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	for want, change := range map[string]func(*planv1.WriteSpec){
		"cannot be read":   func(s *planv1.WriteSpec) { s.SinkState = nil },
		"format version 0": func(s *planv1.WriteSpec) { s.FormatVersion = 0 },
		"schema 5":         func(s *planv1.WriteSpec) { s.SchemaId = 5 },
		"it is half of":    func(s *planv1.WriteSpec) { s.CreatesTable = true },
		"no type": func(s *planv1.WriteSpec) {
			s.SinkState = []byte(`{"v":1,"schema":{"fields":[{"type":7}]},"spec":{"fields":[]}}`)
		},
	} {
		j := newJob(t, h, c)
		change(j.spec)
		err := j.stage()
		require.Error(t, err, want)
		if want != "no type" {
			refused(t, err, sdk.Permanent, want)
		}
	}
}

func TestStage_NoFilesNoManifests(t *testing.T) {
	h := newHost(t, "none")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	j := newJob(t, h, c)
	require.NoError(t, j.stage([]*planv1.DataFile{}, []*planv1.DataFile{}))
	require.Empty(t, j.refs)
	require.Empty(t, h.created())
}

func TestRef_OfAnotherWriteIsRefused(t *testing.T) {
	h := newHost(t, "refs")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	j := newJob(t, h, c)
	require.NoError(t, j.stage([]*planv1.DataFile{j.plainFile(0, 5)}))
	good := j.refs[0].GetData()
	for want, change := range map[string]func(map[string]any){
		"cannot be read":                     func(m map[string]any) { m["v"] = 9 },
		"table x, schema 0":                  func(m map[string]any) { m["table"] = "x" },
		"schema 4":                           func(m map[string]any) { m["schema"] = 4 },
		"spec 4":                             func(m map[string]any) { m["spec"] = 4 },
		"job x":                              func(m map[string]any) { m["job"] = "x" },
		"of 0 bytes":                         func(m map[string]any) { m["length"] = 0 },
		"its references hold 1 files, 6 row": func(m map[string]any) { m["rows"] = 6 },
	} {
		var m map[string]any
		require.NoError(t, json.Unmarshal(good, &m))
		change(m)
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		j.refs = []*sinkv1.StagedRef{{Data: raw}}
		resp := j.commit()
		require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
		require.Contains(t, resp.GetMessage(), want)
	}
	j.refs = []*sinkv1.StagedRef{{Data: good}, {Data: good}}
	require.Contains(t, j.commit().GetMessage(), "comes twice")
	require.Zero(t, h.requests)
}
