package lineage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func TestFromLocation(t *testing.T) { // https://openlineage.io/docs/spec/naming
	for location, want := range map[string]string{
		"file:///srv/lake/demo/t":        "file|/srv/lake/demo/t",
		"file:/srv/lake/t/":              "file|/srv/lake/t",
		"file://host/srv/t":              "file|/srv/t",
		"/srv/t":                         "file|/srv/t",
		"file:///a b/ü":                  "file|/a b/ü",
		"s3://bucket/a/b/":               "s3://bucket|a/b",
		"s3://bucket":                    "s3://bucket|/",
		"gs://bucket/t":                  "gs://bucket|t",
		"abfss://c@acc.dfs.core/x/t":     "abfss://c@acc.dfs.core|x/t",
		"hdfs://nn:8020/user/hive/t":     "hdfs://nn:8020|/user/hive/t",
		"file://":                        "file|/",
		"relative":                       "file|relative",
		"file:///srv/../srv/t/./x//data": "file|/srv/t/x/data",
	} {
		ns, name := FromLocation(location)
		require.Equal(t, want, ns+"|"+name, location)
	}
}

func TestCatalogNamespace(t *testing.T) {
	for in, want := range map[string]string{
		"sqlite:///x/c.db": "sqlite:///x/c.db", "postgresql://u:pw@db:5432/ice?sslmode=off#x": "postgresql://db:5432/ice", "": "", "http://[::1": "http",
	} {
		require.Equal(t, want, CatalogNamespace(in), in)
	}
}

func TestParseParent(t *testing.T) {
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	p, err := ParseParent("airflow://prod/eu/dag.task/" + strings.ToUpper(id))
	require.NoError(t, err)
	require.Equal(t, &Parent{Namespace: "airflow://prod/eu", Name: "dag.task", RunID: id}, p)
	for _, bad := range []string{"", "a", "a/b", "a/b/c", "/b/" + id, "a//" + id, id, "a/b/urn:uuid:" + id} {
		_, err := ParseParent(bad)
		require.ErrorContains(t, err, "NAMESPACE/JOB/RUN", bad)
	}
}

func TestFiles(t *testing.T) {
	b := &Builder{Producer: "p"}
	file := func(path string, size int64) *planv1.PinnedFile {
		return &planv1.PinnedFile{Path: path, SizeBytes: size}
	}
	got := b.Files([]*planv1.PinnedFile{file("/d/a", 1), file("/d/b", 2), file("/e/c", 4), file("/e/c", 4), file("/f", 8)}, []*planv1.Column{{Name: "x", EngineType: "BIGINT"}})
	var names []string
	for _, d := range got {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"/d", "/e/c", "/f"}, names)
	require.EqualValues(t, 3, got[0].InputFacets["inputStatistics"].(map[string]any)["size"])
	require.NotContains(t, got[0].InputFacets["inputStatistics"], "rowCount")
	require.Equal(t, []any{map[string]any{"name": "x", "type": "BIGINT"}}, got[0].Facets["schema"].(map[string]any)["fields"])

	remote := b.Files([]*planv1.PinnedFile{{Uri: "s3://b/k/a"}, {Uri: "s3://b/k/b"}, {Uri: "https://h/d/x.csv"}}, nil)
	require.Equal(t, [][2]string{{"s3://b", "k"}, {"https://h", "d/x.csv"}}, [][2]string{{remote[0].Namespace, remote[0].Name}, {remote[1].Namespace, remote[1].Name}})

	var many []*planv1.PinnedFile
	for i := range 3000 {
		many = append(many, file(fmt.Sprintf("/d%d/f", i), 1))
	}
	require.Len(t, b.Files(many, nil), 1000)
	twice := append(got, got...)
	require.Equal(t, got, Merge(twice))
}

// TestEvent holds an event against what the specification's schema says of it, member by member.
func TestEvent(t *testing.T) {
	b := &Builder{
		Producer: "https://example.org/signet", Version: "1.2", Namespace: "signet-test", IncludeSQL: true,
		TypeText: func(t *planv1.Type) string { return strings.TrimPrefix(t.Kind.String(), "TYPE_KIND_") },
	}
	long := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}
	in := b.Table(Table{Name: "demo.src", Catalog: "sqlite:///c.db", Location: "file:///w/demo/src", Layer: "iceberg", Version: "17", Schema: &planv1.Schema{Fields: []*planv1.Field{
		{Name: "id", Type: long, Doc: "key"}, {Name: "s", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{{Name: "x", Type: long}}}},
	}}})
	b.SetInput(&in, -1, 100, 2)
	out := b.Table(Table{Name: "demo.dst", Location: "s3://b/demo/dst", Lifecycle: "CREATE"})
	b.SetOutput(&out, 10, 1000, 3)
	b.SetVersion(&out, "18")
	b.SetColumns(&out, map[string][]InputColumn{"a": {{Dataset: in, Column: "id", Direct: true}}})
	begun := time.Date(2026, 1, 31, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	r := &Run{
		ID: "01890a5d-ac96-774b-bcce-b302099a8057", Job: "insert.t", SQL: "SELECT 1", Begun: begun, Inputs: []Dataset{in}, Outputs: []Dataset{out},
		Parent: &Parent{Namespace: "ns", Name: "dag", RunID: "01890a5d-ac96-774b-bcce-b302099a8058"},
	}
	body, err := b.Event(Fail, begun.Add(time.Second), r, &Failure{Message: "no"})
	require.NoError(t, err)
	require.NotContains(t, string(body), "\n")
	facet := func(schema, members string) string {
		return `{"_producer": "https://example.org/signet", "_schemaURL": "https://openlineage.io/spec/facets/` + schema + `", ` + members + `}`
	}
	require.JSONEq(t, `{
		"eventTime": "2026-01-31T11:00:01.123Z", "eventType": "FAIL", "producer": "https://example.org/signet",
		"schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
		"run": {"runId": "01890a5d-ac96-774b-bcce-b302099a8057", "facets": {
			"processing_engine": `+facet("1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet", `"name": "signet", "version": "1.2"`)+`,
			"parent": `+facet("1-1-0/ParentRunFacet.json#/$defs/ParentRunFacet", `"run": {"runId": "01890a5d-ac96-774b-bcce-b302099a8058"}, "job": {"namespace": "ns", "name": "dag"}`)+`,
			"errorMessage": `+facet("1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet", `"message": "no", "programmingLanguage": "SQL"`)+`}},
		"job": {"namespace": "signet-test", "name": "insert.t", "facets": {
			"jobType": `+facet("2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet", `"processingType": "BATCH", "integration": "SIGNET", "jobType": "QUERY"`)+`,
			"sql": `+facet("1-1-0/SQLJobFacet.json#/$defs/SQLJobFacet", `"query": "SELECT 1", "dialect": "duckdb"`)+`}},
		"inputs": [{"namespace": "file", "name": "/w/demo/src", "facets": {
			"schema": `+facet("1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
		`"fields": [{"name": "id", "type": "INT64", "description": "key"}, {"name": "s", "type": "STRUCT", "fields": [{"name": "x", "type": "INT64"}]}]`)+`,
			"storage": `+facet("1-0-1/StorageDatasetFacet.json#/$defs/StorageDatasetFacet", `"storageLayer": "iceberg", "fileFormat": "parquet"`)+`,
			"version": `+facet("1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet", `"datasetVersion": "17"`)+`,
			"symlinks": `+facet("1-0-1/SymlinksDatasetFacet.json#/$defs/SymlinksDatasetFacet", `"identifiers": [{"namespace": "sqlite:///c.db", "name": "demo.src", "type": "TABLE"}]`)+`},
			"inputFacets": {"inputStatistics": `+facet("1-0-0/InputStatisticsInputDatasetFacet.json#/$defs/InputStatisticsInputDatasetFacet", `"size": 100, "fileCount": 2`)+`}}],
		"outputs": [{"namespace": "s3://b", "name": "demo/dst", "facets": {
			"lifecycleStateChange": `+facet("1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet", `"lifecycleStateChange": "CREATE"`)+`,
			"version": `+facet("1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet", `"datasetVersion": "18"`)+`,
			"columnLineage": `+facet("1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet",
		`"fields": {"a": {"inputFields": [{"namespace": "file", "name": "/w/demo/src", "field": "id",
			"transformations": [{"type": "DIRECT", "subtype": "TRANSFORMATION", "description": "", "masking": false}]}]}}`)+`},
			"outputFacets": {"outputStatistics": `+facet("1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet", `"rowCount": 10, "size": 1000, "fileCount": 3`)+`}}]
	}`, string(body))

	// Kept and read again it is the same; the text only where it is asked for.
	kept, err := json.Marshal(r)
	require.NoError(t, err)
	again := &Run{}
	require.NoError(t, json.Unmarshal(kept, again))
	b.IncludeSQL = false
	body, err = b.Event(Start, begun.Add(time.Hour), again, nil)
	require.NoError(t, err)
	require.NotContains(t, string(body), "SELECT 1")
	require.Contains(t, string(body), `"eventTime":"2026-01-31T11:00:00.123Z"`, "a START's time is the begin")
	body, err = b.Event(Complete, begun, &Run{ID: "x", Job: "y"}, nil)
	require.NoError(t, err)
	require.Contains(t, string(body), `"inputs":[],"outputs":[]`)
}
