package log

import (
	"encoding/json"
	"strconv"
)

// Action is one line of a commit file, or one row of a checkpoint: exactly one member is set ("Actions" in Delta's PROTOCOL.md).
type Action struct {
	CommitInfo     *CommitInfo
	Protocol       *Protocol
	Metadata       *Metadata
	Add            *Add
	Remove         *Remove
	Txn            *Txn
	DomainMetadata *DomainMetadata
	CDC            *CDC
	Sidecar        *Sidecar            // V2 checkpoints only
	Checkpoint     *CheckpointMetadata // V2 checkpoints only
	// Unknown is an action of a kind that this package does not know: its name and what it holds. Such a line is kept and otherwise ignored, as the protocol demands.
	Unknown *Unknown
}

// Unknown is an action of an unknown kind.
type Unknown struct {
	Name string
	Body json.RawMessage
}

// Extra holds the fields of an action that this package does not know, by name. They are written back as they were read.
type Extra map[string]json.RawMessage

// Format says how data files are stored; the protocol knows parquet alone.
type Format struct {
	Provider string
	Options  map[string]string
}

// Metadata is the metaData action: what the table is from its version on.
type Metadata struct {
	ID               string // the table's UUID
	Name             *string
	Description      *string
	Format           Format
	SchemaString     string // JSON of the schema: see package schema
	PartitionColumns []string
	Configuration    map[string]string
	CreatedTime      *int64 // milliseconds since 1970
	Extra            Extra
}

// Protocol says what readers and writers must be able to do. Feature lists are nil where the action has none, and written if not nil.
type Protocol struct {
	MinReaderVersion int
	MinWriterVersion int
	ReaderFeatures   []string
	WriterFeatures   []string
	Extra            Extra
}

// DeletionVector says which rows of a data file are deleted ("Deletion Vector Descriptor Schema").
type DeletionVector struct {
	StorageType    string // u: file by UUID below the table; i: inline; p: absolute path
	PathOrInlineDv string
	Offset         *int32
	SizeInBytes    int32
	Cardinality    int64
	MaxRowIndex    *int64
	Extra          Extra
}

// ID tells deletion vectors of one file apart (uniqueId in the protocol's text). That of none is empty.
func (d *DeletionVector) ID() string {
	switch {
	case d == nil:
		return ""
	case d.Offset == nil:
		return d.StorageType + d.PathOrInlineDv
	}
	return d.StorageType + d.PathOrInlineDv + "@" + strconv.FormatInt(int64(*d.Offset), 10)
}

// Add is a data file that became part of the table. Path is decoded: relative to the table, or an absolute URI; the codec does the URI encoding of the log.
type Add struct {
	Path                    string
	PartitionValues         map[string]*string // nil: NULL. Exactly the table's partition columns.
	Size                    int64              // bytes
	ModificationTime        int64              // milliseconds since 1970
	DataChange              bool
	Stats                   *string // JSON: see package stats
	Tags                    map[string]*string
	DeletionVector          *DeletionVector
	BaseRowID               *int64
	DefaultRowCommitVersion *int64
	ClusteringProvider      *string
	// RawPath is the path as the log writes it, where Path encoded is something else: whoever removes the file writes it the same, since other readers compare that.
	RawPath string
	Extra   Extra
}

// Remove is a data file that ceased to be part of the table. Path is as in Add.
type Remove struct {
	Path                    string
	DeletionTimestamp       *int64 // milliseconds since 1970
	DataChange              bool
	ExtendedFileMetadata    *bool
	PartitionValues         map[string]*string
	Size                    *int64
	Stats                   *string
	Tags                    map[string]*string
	DeletionVector          *DeletionVector
	BaseRowID               *int64
	DefaultRowCommitVersion *int64
	// RawPath is the path as the log writes it, where Path encoded is something else: whoever removes the file writes it the same, since other readers compare that.
	RawPath string
	Extra   Extra
}

// Txn says how far an application has come ("Transaction Identifiers").
type Txn struct {
	AppID       string
	Version     int64
	LastUpdated *int64 // milliseconds since 1970
	Extra       Extra
}

// CommitInfo says what a commit did. OperationParameters' and OperationMetrics' values are strings, as every history reader takes them; what was read otherwise
// is kept as its JSON text.
type CommitInfo struct {
	Timestamp           *int64 // milliseconds since 1970
	InCommitTimestamp   *int64 // milliseconds since 1970; the first field of the first action where the feature is on
	Operation           string
	OperationParameters map[string]string
	OperationMetrics    map[string]string
	ReadVersion         *int64
	IsolationLevel      *string
	IsBlindAppend       *bool
	EngineInfo          *string
	TxnID               *string
	UserMetadata        *string
	Extra               Extra
}

// DomainMetadata is configuration of a named domain. A removed one is a tombstone.
type DomainMetadata struct {
	Domain        string
	Configuration string
	Removed       bool
	Extra         Extra
}

// CDC is a file of the change data feed: never part of the table's rows.
type CDC struct {
	Path            string
	PartitionValues map[string]*string
	Size            int64
	DataChange      bool
	Tags            map[string]*string
	// RawPath is the path as the log writes it, where Path encoded is something else: whoever removes the file writes it the same, since other readers compare that.
	RawPath string
	Extra   Extra
}

// Sidecar is a file with adds and removes of a V2 checkpoint, by its name in _delta_log/_sidecars.
type Sidecar struct {
	Path             string
	SizeInBytes      int64
	ModificationTime int64
	Tags             map[string]*string
	Extra            Extra
}

// CheckpointMetadata is in V2 checkpoints only.
type CheckpointMetadata struct {
	Version int64
	Tags    map[string]*string
	Extra   Extra
}
