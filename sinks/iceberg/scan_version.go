package iceberg

import (
	"fmt"
	"strconv"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// readPoint is what of a table's history a scan reads, and with which schema.
type readPoint struct {
	snapshot *meta.Snapshot // nil: no data yet
	schema   *meta.Schema
	branch   string // by which it was named; empty: the main one, a tag or a version
}

// scanned picks the snapshot that a request names and the schema to read it with. Branches are read with the table's current schema, snapshots that are
// named otherwise with their own.
func scanned(m *meta.Metadata, req *sinkv1.PlanScanRequest) (readPoint, error) {
	switch {
	case req.GetVersion() != "" && req.GetRef() != "", req.AsOfMillis != nil && req.GetVersion()+req.GetRef() != "":
		return readPoint{}, fmt.Errorf("a scan is of a version, of a reference or of a time, and not of several of them")
	case req.GetVersion() != "":
		return atVersion(m, req.GetVersion())
	case req.GetRef() != "":
		return atRef(m, req.GetRef())
	case req.AsOfMillis != nil:
		return atTime(m, req.GetAsOfMillis())
	}
	head, err := m.Head()
	return current(m, head, "", err)
}

// current reads a branch's snapshot.
func current(m *meta.Metadata, s *meta.Snapshot, branch string, err error) (readPoint, error) {
	if err != nil {
		return readPoint{}, err
	}
	schema, err := m.CurrentSchema()
	if err != nil {
		return readPoint{}, err
	}
	return readPoint{snapshot: s, schema: schema, branch: branch}, listed(s)
}

func atVersion(m *meta.Metadata, version string) (readPoint, error) {
	id, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return readPoint{}, fmt.Errorf("version %q is not a snapshot id", version)
	}
	snap, err := m.Snapshot(id)
	if err == nil && snap == nil {
		err = fmt.Errorf("it has no snapshot %d; it may have expired", id)
	}
	if err != nil {
		return readPoint{}, err
	}
	return then(m, snap)
}

func atRef(m *meta.Metadata, name string) (readPoint, error) {
	ref, ok := m.Refs[name]
	switch {
	case !ok && name == meta.MainBranch: // of an empty table, or of one that has no references written
		head, err := m.Head()
		return current(m, head, "", err)
	case !ok:
		return readPoint{}, fmt.Errorf("it has no branch or tag %q", name)
	}
	snap, err := m.Snapshot(ref.SnapshotID)
	if err == nil && snap == nil {
		err = fmt.Errorf("%w: %s %q names snapshot %d, which is not in the list of snapshots", meta.ErrInvalid, ref.Type, name, ref.SnapshotID)
	}
	if err != nil {
		return readPoint{}, err
	}
	if ref.Type == "tag" {
		return then(m, snap)
	}
	if name == meta.MainBranch {
		name = ""
	}
	return current(m, snap, name, nil)
}

func atTime(m *meta.Metadata, millis int64) (readPoint, error) {
	snap, err := m.AsOf(millis)
	if err == nil && snap == nil {
		err = fmt.Errorf("it has no snapshot that is as old as %s", time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if err != nil {
		return readPoint{}, err
	}
	return then(m, snap)
}

// then reads a snapshot with its own schema.
func then(m *meta.Metadata, snap *meta.Snapshot) (readPoint, error) {
	if snap.SchemaID != nil {
		own, err := m.Schema(*snap.SchemaID)
		if err != nil {
			return readPoint{}, err
		}
		if own != nil {
			return readPoint{snapshot: snap, schema: own}, listed(snap)
		}
	}
	return current(m, snap, "", nil)
}

func listed(s *meta.Snapshot) error {
	if s != nil && s.ManifestList == "" {
		return fmt.Errorf("snapshot %d has no manifest list (a table of a very old version), which is not supported", s.ID)
	}
	if s != nil && s.KeyID != "" {
		return fmt.Errorf("it is encrypted, which is not supported")
	}
	return nil
}
