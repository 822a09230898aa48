package transaction

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
)

const (
	ictEnabled            = "delta.enableInCommitTimestamps"
	ictEnablementVersion  = "delta.inCommitTimestampEnablementVersion"
	ictEnablementTime     = "delta.inCommitTimestampEnablementTimestamp"
	appendOnly            = "delta.appendOnly"
	featureInCommitTime   = "inCommitTimestamp"
	featuresListedVersion = 7
)

// Build gives the actions of the version after at, which is the newest snapshot, or nil where the table does not exist. commitInfo is the first of them; txnID has to
// be new for every content. Build trusts Check for what others have committed between Base and at, and refuses by itself what would leave a wrong table:
// a file that is there twice or not at all, values of other partition columns, removals from an append-only table.
// ErrNothing: there is nothing to commit. ErrLanded: one of the Txns is there.
func (t *Transaction) Build(at *log.Snapshot, now time.Time, txnID string) ([]log.Action, error) {
	out, err := t.Head(at, now, txnID)
	if err != nil {
		return nil, err
	}
	for _, f := range t.Adds {
		if f.DataChange == t.Rearranges {
			changed := *f
			changed.DataChange = !t.Rearranges
			f = &changed
		}
		out = append(out, log.Action{Add: f})
	}
	return out, nil
}

// Head is Build without the adds, for who has them as lines: these have to follow what Head gives, with dataChange as Rearranges wants it. Of the statistics of Adds only
// numRecords is looked at.
func (t *Transaction) Head(at *log.Snapshot, now time.Time, txnID string) ([]log.Action, error) {
	if t.empty() {
		return nil, ErrNothing
	}
	protocol, metadata, err := t.table(at)
	if err != nil {
		return nil, err
	}
	if err := log.CheckWrite(protocol, *metadata); err != nil {
		return nil, err
	}
	if err := t.checkFiles(at, metadata); err != nil {
		return nil, err
	}
	millis := now.UnixMilli()
	info := t.commitInfo(txnID)
	if inCommitTimestamps(protocol, metadata) {
		if at != nil {
			millis = max(millis, at.Timestamp+1)
		}
		info.InCommitTimestamp = &millis
		metadata = t.enableTimestamps(at, metadata, millis)
	}
	info.Timestamp = &millis

	out := make([]log.Action, 0, 3+len(t.Txns)+len(t.Domains)+len(t.Removes))
	out = append(out, log.Action{CommitInfo: info})
	if t.Protocol != nil || at == nil {
		out = append(out, log.Action{Protocol: &protocol})
	}
	if t.Metadata != nil {
		out = append(out, log.Action{Metadata: metadata})
	}
	for i := range t.Txns {
		txn := t.Txns[i]
		if txn.LastUpdated == nil {
			txn.LastUpdated = &millis
		}
		out = append(out, log.Action{Txn: &txn})
	}
	for i := range t.Domains {
		out = append(out, log.Action{DomainMetadata: &t.Domains[i]})
	}
	removes := make([]log.Remove, len(t.Removes))
	for i, f := range t.Removes {
		removes[i] = t.remove(f, &millis)
		out = append(out, log.Action{Remove: &removes[i]})
	}
	return out, nil
}

// empty: an append of no files is no commit unless an application's version has to advance, and neither is an overwrite with nothing that finds nothing to remove.
func (t *Transaction) empty() bool {
	return t.Base != nil && len(t.Adds)+len(t.Removes)+len(t.Txns)+len(t.Domains) == 0 && t.Metadata == nil && t.Protocol == nil
}

// table is what the table will be.
func (t *Transaction) table(at *log.Snapshot) (log.Protocol, *log.Metadata, error) {
	var protocol log.Protocol
	var metadata *log.Metadata
	switch {
	case at == nil && (t.Metadata == nil || t.Protocol == nil):
		return protocol, nil, fmt.Errorf("%w: there is no table, and the transaction says not what table to create", ErrInvalid)
	case at == nil && t.Base != nil:
		return protocol, nil, fmt.Errorf("%w: the table that was read at version %d is not there any more", ErrInvalid, t.Base.Version)
	case at != nil && t.Base == nil:
		return protocol, nil, fmt.Errorf("%w: the table is to be created, and is there at version %d", ErrInvalid, at.Version)
	case at != nil && t.Base.Metadata.ID != at.Metadata.ID:
		return protocol, nil, fmt.Errorf("%w: the table that was read has id %s, and the one that is there now %s; it was dropped and created again", ErrInvalid, t.Base.Metadata.ID, at.Metadata.ID)
	case at != nil && t.Base.Version > at.Version:
		return protocol, nil, fmt.Errorf("%w: version %d was read, which is newer than version %d on which the commit is built", ErrInvalid, t.Base.Version, at.Version)
	case at != nil:
		protocol, metadata = at.Protocol, &at.Metadata
		if landed := Landed(at, t.Txns); len(landed) > 0 {
			return protocol, nil, fmt.Errorf("%w: application %s has version %d in the table", ErrLanded, landed[0].AppID, landed[0].Version)
		}
	}
	if t.Protocol != nil {
		protocol = *t.Protocol
	}
	if t.Metadata != nil {
		metadata = t.Metadata
	}
	return protocol, metadata, nil
}

func schemaOf(m *log.Metadata) (*schema.Schema, partition.Columns, error) {
	s, err := schema.Parse(m.SchemaString)
	if err != nil {
		return nil, partition.Columns{}, fmt.Errorf("schema of the table: %w", err)
	}
	columns, err := partition.Of(s, m.PartitionColumns)
	return s, columns, err
}

type fileKey struct{ path, vector string }

func keyOf(f *log.Add) fileKey { return fileKey{f.Path, f.DeletionVector.ID()} }

func (t *Transaction) checkFiles(at *log.Snapshot, m *log.Metadata) error {
	if len(t.Removes) > 0 && !t.Rearranges && at != nil && strings.EqualFold(at.Metadata.Configuration[appendOnly], "true") {
		return fmt.Errorf("%w: property %s is set, and %s would remove %d files; unset it first", ErrAppendOnly, appendOnly, t.Operation.Name, len(t.Removes))
	}
	s, columns, err := schemaOf(m)
	if err != nil {
		return err
	}
	if err := checkTxns(t.Txns); err != nil {
		return err
	}
	seen := make(map[fileKey]struct{}, len(t.Removes)+len(t.Adds))
	once := func(f *log.Add) error {
		k := keyOf(f)
		if _, twice := seen[k]; twice {
			return fmt.Errorf("%w: file %s is there twice", ErrInvalid, f.Path)
		}
		seen[k] = struct{}{}
		return nil
	}
	for _, f := range t.Removes {
		if err := once(f); err != nil {
			return err
		}
		if at == nil {
			return fmt.Errorf("%w: file %s would be removed from a table that does not exist", ErrInvalid, f.Path)
		}
		if _, live := at.File(f.Path, f.DeletionVector.ID()); !live {
			return &Conflict{Check: RemovedTwice, Version: at.Version, Base: t.Base.Version, Path: f.Path}
		}
	}
	for _, f := range t.Adds {
		if err := once(f); err != nil {
			return err
		}
		if at != nil {
			if _, live := at.File(f.Path, f.DeletionVector.ID()); live {
				return fmt.Errorf("%w: file %s is part of the table already, at version %d; adding it again would double its rows", ErrInvalid, f.Path, at.Version)
			}
		}
		if err := checkAdd(f, s, columns); err != nil {
			return fmt.Errorf("%w: file %s: %w", ErrInvalid, f.Path, err)
		}
	}
	return nil
}

func checkTxns(txns []log.Txn) error {
	seen := map[string]bool{}
	for _, t := range txns {
		if seen[t.AppID] {
			return fmt.Errorf("%w: application %s is there twice", ErrInvalid, t.AppID)
		}
		seen[t.AppID] = true
	}
	return nil
}

func checkAdd(f *log.Add, s *schema.Schema, columns partition.Columns) error {
	if f.Path == "" || f.Size < 0 {
		return fmt.Errorf("a path and a size are needed, not %q and %d bytes", f.Path, f.Size)
	}
	values, err := columns.Parse(f.PartitionValues)
	if err != nil {
		return err
	}
	for i, v := range values {
		if !v.IsNull() {
			continue
		}
		if field, ok := s.Field(columns.Names[i]); ok && !field.Nullable {
			return fmt.Errorf("partition column %s is NOT NULL, and the file's value is NULL (an empty string is NULL in a partition column)", columns.Names[i])
		}
	}
	return nil
}

func (t *Transaction) remove(f *log.Add, millis *int64) log.Remove {
	extended := true
	return log.Remove{
		Path: f.Path, RawPath: f.RawPath, DeletionTimestamp: millis, DataChange: !t.Rearranges, ExtendedFileMetadata: &extended, PartitionValues: f.PartitionValues, Size: &f.Size,
		Tags: f.Tags, DeletionVector: f.DeletionVector, BaseRowID: f.BaseRowID, DefaultRowCommitVersion: f.DefaultRowCommitVersion,
	}
}

func (t *Transaction) commitInfo(txnID string) *log.CommitInfo {
	blind, level := t.Blind(), string(t.Isolation())
	info := &log.CommitInfo{
		Operation: t.Operation.Name, OperationParameters: t.Operation.Parameters, OperationMetrics: t.metrics(), IsolationLevel: &level, IsBlindAppend: &blind, TxnID: &txnID,
	}
	if info.OperationParameters == nil {
		info.OperationParameters = map[string]string{}
	}
	if t.Base != nil {
		info.ReadVersion = &t.Base.Version
	}
	if t.EngineInfo != "" {
		info.EngineInfo = &t.EngineInfo
	}
	if t.UserMetadata != "" {
		info.UserMetadata = &t.UserMetadata
	}
	return info
}

func inCommitTimestamps(p log.Protocol, m *log.Metadata) bool {
	return p.MinWriterVersion >= featuresListedVersion && slices.Contains(p.WriterFeatures, featureInCommitTime) && strings.EqualFold(m.Configuration[ictEnabled], "true")
}

// enableTimestamps notes since when a table that exists has in-commit timestamps, which readers of its past need ("In-Commit Timestamps").
func (t *Transaction) enableTimestamps(at *log.Snapshot, m *log.Metadata, millis int64) *log.Metadata {
	if t.Metadata == nil || at == nil || at.InCommitTimestamps() {
		return m
	}
	out := *m
	out.Configuration = maps.Clone(m.Configuration)
	out.Configuration[ictEnablementVersion] = strconv.FormatInt(at.Version+1, 10)
	out.Configuration[ictEnablementTime] = strconv.FormatInt(millis, 10)
	return &out
}

// records is the number of rows of a file that are not deleted, where its statistics say so.
func records(f *log.Add) (int64, bool) {
	if f.Stats == nil {
		return 0, false
	}
	n, ok := stats.Records(*f.Stats)
	if ok && f.DeletionVector != nil {
		n -= f.DeletionVector.Cardinality
	}
	return n, ok
}
