package meta

import (
	"encoding/json"
	"fmt"
)

// AsOf is the snapshot that the main branch pointed to at a time (milliseconds since 1970), or nil if it had none then or nobody knows any more. It goes by
// the metadata's log, as the reference implementation does; without one by the ancestors of the current snapshot.
func (m *Metadata) AsOf(millis int64) (*Snapshot, error) {
	var log []struct {
		SnapshotID  int64 `json:"snapshot-id"`
		TimestampMS int64 `json:"timestamp-ms"`
	}
	if len(m.log) > 0 {
		if err := json.Unmarshal(m.log, &log); err != nil {
			return nil, fmt.Errorf("%w: snapshot-log: %w", ErrInvalid, err)
		}
	}
	if len(log) == 0 {
		return m.ancestorAsOf(millis)
	}
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].TimestampMS <= millis {
			s, err := m.Snapshot(log[i].SnapshotID)
			if s == nil && err == nil {
				err = fmt.Errorf("snapshot %d, which was current then, has expired", log[i].SnapshotID)
			}
			return s, err
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer here, not a failure
}

// Ancestors are the snapshots from id on back, the newest first, as far as the table still has them.
func (m *Metadata) Ancestors(id *int64) ([]*Snapshot, error) {
	byID := make(map[int64]*Snapshot, len(m.snapshots))
	for _, raw := range m.snapshots {
		s := &Snapshot{}
		if err := json.Unmarshal(raw, s); err != nil {
			return nil, fmt.Errorf("%w: snapshot: %w", ErrInvalid, err)
		}
		byID[s.ID] = s
	}
	var out []*Snapshot
	for id != nil && byID[*id] != nil {
		s := byID[*id]
		delete(byID, *id) // no circle, whatever the metadata says
		out = append(out, s)
		id = s.ParentID
	}
	return out, nil
}

func (m *Metadata) ancestorAsOf(millis int64) (*Snapshot, error) {
	s, err := m.Head()
	for seen := 0; err == nil && s != nil && s.TimestampMS > millis && seen <= len(m.snapshots); seen++ {
		if s.ParentID == nil {
			return nil, nil //nolint:nilnil // absence is an answer here, not a failure
		}
		s, err = m.Snapshot(*s.ParentID)
	}
	return s, err
}
