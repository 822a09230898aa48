package iceberg

import (
	"encoding/json"
	"errors"
	"fmt"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// Kinds of references.
const (
	refManifest = ""        // an Iceberg manifest of added files
	refChanges  = "changes" // a changeLog
)

// ref is StagedRef.data: one Iceberg manifest, or one list of changes, that Stage wrote or packed, or none for a job without files.
type ref struct {
	V          int    `json:"v"`
	Kind       string `json:"kind,omitempty"`
	TableUUID  string `json:"table"`
	JobID      string `json:"job"`
	Version    int    `json:"format"` // of the Iceberg manifest
	SchemaID   int32  `json:"schema"`
	SpecID     int32  `json:"spec"`
	Path       string `json:"path,omitempty"`
	Inline     []byte `json:"inline,omitempty"` // in place of Path: the manifest itself, which Commit creates
	Length     int64  `json:"length"`
	Files      int64  `json:"files"`
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	SnapshotID int64  `json:"snapshot,omitempty"` // format version 1: in the entries
	Sequence   *int64 `json:"sequence,omitempty"` // data sequence number of the files; nil: that of the commit
	// Changes.
	ReplacedFiles int64 `json:"replaced-files,omitempty"`
	DeletedRows   int64 `json:"deleted-rows,omitempty"`
	UpdatedRows   int64 `json:"updated-rows,omitempty"`

	Partitions []icefile.FieldSummary `json:"partitions"`
	// The rest is about the whole call of Stage and only in its first reference.
	Nulls    []int32  `json:"nulls,omitempty"`  // optional columns that may hold NULLs
	Tuples   []uint64 `json:"tuples,omitempty"` // hashes of the partitions touched
	ManyMore bool     `json:"many,omitempty"`   // more than tuples can hold
	First    bool     `json:"first,omitempty"`
	ByName   bool     `json:"by-name,omitempty"` // some files have no field ids
}

const refVersion = 1

func (r ref) encode() (*sinkv1.StagedRef, error) {
	r.V = refVersion
	data, err := json.Marshal(r)
	out := &sinkv1.StagedRef{Data: data}
	if r.Path != "" {
		out.Objects = []string{r.Path}
	}
	return out, err
}

var errRef = errors.New("a staged reference was not made by this sink, or belongs to another write")

// readRef reads a reference and checks that it belongs to the plan.
func readRef(p *plan, jobID string, in *sinkv1.StagedRef) (*ref, error) {
	r := &ref{}
	if err := json.Unmarshal(in.GetData(), r); err != nil || r.V != refVersion {
		return nil, fmt.Errorf("%w: it cannot be read (%w)", errRef, err)
	}
	switch {
	case r.TableUUID != p.GetTableUuid() || r.SchemaID != p.GetSchemaId() || r.SpecID != p.GetSpecId() || int32(r.Version) != p.GetFormatVersion():
		return nil, fmt.Errorf("%w: table %s, schema %d, spec %d, format version %d; the write has %s, %d, %d, %d", errRef,
			r.TableUUID, r.SchemaID, r.SpecID, r.Version, p.GetTableUuid(), p.GetSchemaId(), p.GetSpecId(), p.GetFormatVersion())
	case r.Kind != refManifest && r.Kind != refChanges:
		return nil, fmt.Errorf("%w: kind %q", errRef, r.Kind)
	case r.JobID != jobID:
		return nil, fmt.Errorf("%w: job %s, the unit's is %s", errRef, r.JobID, jobID)
	case (r.Path == "") == (len(r.Inline) == 0) || len(r.Inline) > 0 && r.Length != int64(len(r.Inline)) || r.Length <= 0 || r.Rows < 0 || r.Bytes < 0 ||
		r.Kind == refManifest && r.Files <= 0 || min(r.Files, r.ReplacedFiles, r.DeletedRows, r.UpdatedRows) < 0:
		return nil, fmt.Errorf("%w: manifest %q of %d bytes with %d files", errRef, r.Path, r.Length, r.Files)
	}
	return r, nil
}

// manifest is the reference as a record of the list of a snapshot.
func (r *ref) manifest(snapshotID, sequenceNumber int64) icefile.Manifest {
	zero, oldest := int64(0), sequenceNumber
	if r.Sequence != nil {
		oldest = *r.Sequence
	}
	return icefile.Manifest{
		Path: r.Path, Length: r.Length, SpecID: r.SpecID, Content: icefile.ContentData, SequenceNumber: sequenceNumber, MinSequenceNumber: oldest,
		SnapshotID: &snapshotID, Files: icefile.Counts{Added: &r.Files, Existing: &zero, Deleted: &zero},
		Rows: icefile.Counts{Added: &r.Rows, Existing: &zero, Deleted: &zero}, Partitions: r.Partitions,
	}
}
