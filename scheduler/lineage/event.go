package lineage

import (
	"encoding/json"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Types of events.
const (
	Start    = "START"
	Running  = "RUNNING"
	Complete = "COMPLETE"
	Fail     = "FAIL"
	Abort    = "ABORT"
)

const eventSchema = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"

// Facets are facets by their keys.
type Facets map[string]any

// facets' schemas, below https://openlineage.io/spec/facets/.
var schemas = map[string]string{
	"parent":               "1-1-0/ParentRunFacet.json#/$defs/ParentRunFacet",
	"processing_engine":    "1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
	"errorMessage":         "1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
	"jobType":              "2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
	"sql":                  "1-1-0/SQLJobFacet.json#/$defs/SQLJobFacet",
	"schema":               "1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
	"version":              "1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet",
	"symlinks":             "1-0-1/SymlinksDatasetFacet.json#/$defs/SymlinksDatasetFacet",
	"storage":              "1-0-1/StorageDatasetFacet.json#/$defs/StorageDatasetFacet",
	"lifecycleStateChange": "1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet",
	"columnLineage":        "1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet",
	"inputStatistics":      "1-0-0/InputStatisticsInputDatasetFacet.json#/$defs/InputStatisticsInputDatasetFacet",
	"outputStatistics":     "1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet",
}

// set puts a facet of one of the known schemas.
func (b *Builder) set(f Facets, key string, members map[string]any) Facets {
	if f == nil {
		f = Facets{}
	}
	members["_producer"], members["_schemaURL"] = b.Producer, "https://openlineage.io/spec/facets/"+schemas[key]
	f[key] = members
	return f
}

// Dataset is a table, a file or a directory of files.
type Dataset struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	Facets       Facets `json:"facets,omitempty"`
	InputFacets  Facets `json:"inputFacets,omitempty"`
	OutputFacets Facets `json:"outputFacets,omitempty"`
}

type event struct {
	Time      string    `json:"eventTime"`
	Type      string    `json:"eventType"`
	Run       run       `json:"run"`
	Job       jobRef    `json:"job"`
	Inputs    []Dataset `json:"inputs"`
	Outputs   []Dataset `json:"outputs"`
	Producer  string    `json:"producer"`
	SchemaURL string    `json:"schemaURL"`
}

type run struct {
	ID     string `json:"runId"`
	Facets Facets `json:"facets"`
}

type jobRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Facets    Facets `json:"facets"`
}

// Builder makes events.
type Builder struct {
	Producer   string // URI of the program
	Version    string
	Namespace  string // of jobs
	IncludeSQL bool
	TypeText   func(*planv1.Type) string // names of types, for people
}

// Run is one job, as its events tell of it. It is kept while the job runs, so that events after a restart say the same.
type Run struct {
	ID      string    `json:"id"` // UUID
	Job     string    `json:"job"`
	Parent  *Parent   `json:"parent,omitempty"`
	SQL     string    `json:"sql,omitempty"`
	Begun   time.Time `json:"begun"`
	Inputs  []Dataset `json:"inputs,omitempty"`
	Outputs []Dataset `json:"outputs,omitempty"`
	Started bool      `json:"started,omitempty"` // an event has told of it
}

// Failure is why a run ended without success.
type Failure struct{ Message string }

// Event is an event of the run, as one line of JSON. The time of a START is the run's begin, whenever it is made.
func (b *Builder) Event(kind string, at time.Time, r *Run, why *Failure) ([]byte, error) {
	if kind == Start {
		at = r.Begun
	}
	e := event{
		Time: at.UTC().Format("2006-01-02T15:04:05.000Z"), Type: kind, Producer: b.Producer, SchemaURL: eventSchema,
		Run: run{ID: r.ID}, Job: jobRef{Namespace: b.Namespace, Name: r.Job}, Inputs: r.Inputs, Outputs: r.Outputs,
	}
	if e.Inputs == nil {
		e.Inputs = []Dataset{}
	}
	if e.Outputs == nil {
		e.Outputs = []Dataset{}
	}
	e.Run.Facets = b.set(nil, "processing_engine", map[string]any{"name": "signet", "version": b.Version})
	if p := r.Parent; p != nil {
		b.set(e.Run.Facets, "parent", map[string]any{"run": map[string]any{"runId": p.RunID}, "job": map[string]any{"namespace": p.Namespace, "name": p.Name}})
	}
	if why != nil {
		b.set(e.Run.Facets, "errorMessage", map[string]any{"message": why.Message, "programmingLanguage": "SQL"})
	}
	e.Job.Facets = b.set(nil, "jobType", map[string]any{"processingType": "BATCH", "integration": "SIGNET", "jobType": "QUERY"})
	if b.IncludeSQL && r.SQL != "" {
		b.set(e.Job.Facets, "sql", map[string]any{"query": r.SQL, "dialect": "duckdb"})
	}
	return json.Marshal(e)
}
