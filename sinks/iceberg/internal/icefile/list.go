package icefile

import (
	"fmt"
	"strconv"

	"github.com/signet-io/signet/internal/avro"
)

// Content of a manifest.
const (
	ContentData    = 0
	ContentDeletes = 1
)

// Manifest is one record of a manifest list.
type Manifest struct {
	Path              string
	Length            int64
	SpecID            int32
	Content           int32
	SequenceNumber    int64
	MinSequenceNumber int64
	SnapshotID        *int64 // that added it; some writers of format version 1 leave it out
	Files, Rows       Counts
	Partitions        []FieldSummary // nil: none were written
	Key               []byte         // nil: not encrypted
	FirstRowID        *int64
}

// Counts are of files or of rows; nil: not written.
type Counts struct{ Added, Existing, Deleted *int64 }

// Known reports whether all three are there.
func (c Counts) Known() bool { return c.Added != nil && c.Existing != nil && c.Deleted != nil }

// Live is the number of added and existing ones; 0 where they are not written.
func (c Counts) Live() int64 {
	n := int64(0)
	for _, p := range []*int64{c.Added, c.Existing} {
		if p != nil {
			n += *p
		}
	}
	return n
}

// ListHeader is what a manifest list says about its snapshot.
type ListHeader struct {
	Version        int // table format version
	SnapshotID     int64
	ParentID       *int64
	SequenceNumber int64
	FirstRowID     int64 // version 3
}

// WriteList encodes a manifest list. In version 3 it gives every data manifest without a first row id the next free one, in the order of the list, notes it
// in the manifest, and returns how many ids it gave.
func WriteList(h ListHeader, manifests []Manifest) (data []byte, rowIDs int64, err error) {
	parent := "null"
	if h.ParentID != nil {
		parent = strconv.FormatInt(*h.ParentID, 10)
	}
	header := []avro.KV{{Key: "snapshot-id", Value: strconv.FormatInt(h.SnapshotID, 10)}, {Key: "parent-snapshot-id", Value: parent}}
	if h.Version >= 2 {
		header = append(header, avro.KV{Key: "sequence-number", Value: strconv.FormatInt(h.SequenceNumber, 10)})
	}
	if h.Version >= 3 {
		header = append(header, avro.KV{Key: "first-row-id", Value: strconv.FormatInt(h.FirstRowID, 10)})
	}
	header = append(header, avro.KV{Key: "format-version", Value: strconv.Itoa(h.Version)})
	w, err := avro.NewWriter(listSchema(h.Version), header)
	if err != nil {
		return nil, 0, err
	}
	next := h.FirstRowID
	for i := range manifests {
		m := &manifests[i]
		first := m.FirstRowID
		if h.Version >= 3 && first == nil && m.Content == ContentData {
			if m.Rows.Added == nil || m.Rows.Existing == nil {
				return nil, 0, fmt.Errorf("manifest %s: its row counts are not known, so that its rows cannot be numbered", m.Path)
			}
			id := next
			first, next = &id, next+m.Rows.Live()
			m.FirstRowID = first // whoever builds on this list must not give it another one
		}
		row, err := appendManifest(w.Row(), h.Version, m, first)
		if err != nil {
			return nil, 0, err
		}
		if err := w.Done(row); err != nil {
			return nil, 0, err
		}
	}
	data, err = w.Bytes()
	return data, next - h.FirstRowID, err
}

func appendManifest(b []byte, version int, m *Manifest, firstRowID *int64) ([]byte, error) {
	if m.SnapshotID == nil {
		return nil, fmt.Errorf("manifest %s: the snapshot that added it is not known", m.Path)
	}
	if version >= 2 && (!m.Files.Known() || !m.Rows.Known()) {
		return nil, fmt.Errorf("manifest %s: its counts are not known", m.Path)
	}
	b = avro.AppendString(b, m.Path)
	b = avro.AppendLong(b, m.Length)
	b = avro.AppendLong(b, int64(m.SpecID))
	if version >= 2 {
		b = avro.AppendLong(b, int64(m.Content))
		b = avro.AppendLong(b, m.SequenceNumber)
		b = avro.AppendLong(b, m.MinSequenceNumber)
	}
	b = avro.AppendLong(b, *m.SnapshotID)
	b = appendCounts(b, version, m.Files)
	if version == 1 {
		b = appendCounts(appendSummaries(b, m.Partitions), version, m.Rows)
	} else {
		b = appendSummaries(appendCounts(b, version, m.Rows), m.Partitions)
	}
	b = appendOptBytes(b, m.Key)
	if version >= 3 {
		b = appendOptLong(b, firstRowID)
	}
	return b, nil
}

func appendCounts(b []byte, version int, c Counts) []byte {
	for _, n := range []*int64{c.Added, c.Existing, c.Deleted} {
		if version == 1 {
			b = appendOptLong(b, n)
		} else {
			b = avro.AppendLong(b, *n)
		}
	}
	return b
}

func appendOptLong(b []byte, n *int64) []byte {
	if n == nil {
		return avro.AppendNull(b)
	}
	return avro.AppendLong(avro.AppendSome(b), *n)
}

func appendOptBytes(b, v []byte) []byte {
	if v == nil {
		return avro.AppendNull(b)
	}
	return avro.AppendBytes(avro.AppendSome(b), v)
}

func appendSummaries(b []byte, all []FieldSummary) []byte {
	if all == nil {
		return avro.AppendNull(b)
	}
	b = avro.AppendSome(b)
	if len(all) > 0 {
		b = avro.AppendLong(b, int64(len(all)))
		for _, s := range all {
			b = appendBool(b, s.ContainsNull)
			if s.ContainsNaN == nil {
				b = avro.AppendNull(b)
			} else {
				b = appendBool(avro.AppendSome(b), *s.ContainsNaN)
			}
			b = appendOptBytes(appendOptBytes(b, s.Lower), s.Upper)
		}
	}
	return avro.AppendLong(b, 0)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// ReadList decodes a manifest list of any format version.
func ReadList(raw []byte) ([]Manifest, error) {
	f, err := avro.Open(raw)
	if err != nil {
		return nil, err
	}
	var out []Manifest
	err = f.Records(func(r *avro.Record) error {
		m, err := readManifest(r)
		out = append(out, m)
		return err
	})
	return out, err
}

func readManifest(r *avro.Record) (Manifest, error) {
	long := func(id int, names ...string) *int64 {
		if v, ok := r.Get(id, names...).(int64); ok {
			return &v
		}
		return nil
	}
	orZero := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	m := Manifest{
		Length: orZero(long(500+1, "manifest_length")), SpecID: int32(orZero(long(502, "partition_spec_id"))),
		Content: int32(orZero(long(517, "content"))), SequenceNumber: orZero(long(515, "sequence_number")), MinSequenceNumber: orZero(long(516, "min_sequence_number")),
		SnapshotID: long(503, "added_snapshot_id"), FirstRowID: long(520, "first_row_id"),
		Files: Counts{
			long(504, "added_files_count", "added_data_files_count"), long(505, "existing_files_count", "existing_data_files_count"),
			long(506, "deleted_files_count", "deleted_data_files_count"),
		},
		Rows: Counts{long(512, "added_rows_count"), long(513, "existing_rows_count"), long(514, "deleted_rows_count")},
	}
	m.Path, _ = r.Get(500, "manifest_path").(string)
	if m.Path == "" {
		return m, fmt.Errorf("%w: a manifest without a path", avro.ErrFormat)
	}
	m.Key, _ = r.Get(519, "key_metadata").([]byte)
	if list, ok := r.Get(507, "partitions").([]any); ok {
		m.Partitions = make([]FieldSummary, 0, len(list))
		for _, item := range list {
			s, _ := item.(*avro.Record)
			m.Partitions = append(m.Partitions, readSummary(s))
		}
	}
	return m, nil
}

func readSummary(r *avro.Record) FieldSummary {
	var s FieldSummary
	s.ContainsNull, _ = r.Get(509, "contains_null").(bool)
	if nan, ok := r.Get(518, "contains_nan").(bool); ok {
		s.ContainsNaN = &nan
	}
	s.Lower, _ = r.Get(510, "lower_bound").([]byte)
	s.Upper, _ = r.Get(511, "upper_bound").([]byte)
	return s
}
