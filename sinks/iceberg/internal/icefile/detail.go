package icefile

import "github.com/signet-io/signet/internal/avro"

// Content of a file.
const (
	FileData      = 0
	FilePositions = 1 // position deletes, deletion vectors
	FileEquality  = 2 // equality deletes
)

// Metrics of one column as a manifest entry has them; nil where they are not written.
type Metrics struct {
	Size, Values, Nulls, NaNs *int64
	Lower, Upper              []byte
}

// Detail is what only readers of a whole entry need.
type Detail struct {
	SnapshotID     *int64 // nil: of the manifest
	Sequence       *int64 // data sequence number; nil: inherited
	FileSequence   *int64 // nil: inherited
	FirstRowID     *int64
	EqualityIDs    []int32
	ReferencedFile string // delete files: the only data file they are about
	ContentOffset  *int64 // deletion vectors
	ContentSize    *int64
	SortOrderID    *int64
	Key            []byte // nil: not encrypted
}

// ReadDetails decodes an Iceberg manifest whole, so that Detail and Metrics of its entries can be asked.
func ReadDetails(raw []byte, visit func(*Entry) error) error {
	f, err := avro.Open(raw)
	if err != nil {
		return err
	}
	return f.Records(func(r *avro.Record) error {
		e, err := readEntry(r)
		if err != nil {
			return err
		}
		e.record = r
		return visit(e)
	})
}

// DataSequence is the data sequence number of an entry of the manifest: its own, or the manifest's where it is inherited.
func (e *Entry) DataSequence(m *Manifest) int64 {
	if n := optLong(e.record, 3, "sequence_number"); n != nil {
		return *n
	}
	if e.Status == StatusAdded || m.SequenceNumber == 0 {
		return m.SequenceNumber
	}
	return 0
}

// Detail decodes what ReadDetails has read.
func (e *Entry) Detail() Detail {
	d := Detail{
		SnapshotID: optLong(e.record, 1, "snapshot_id"), Sequence: optLong(e.record, 3, "sequence_number"), FileSequence: optLong(e.record, 4, "file_sequence_number"),
		FirstRowID: optLong(e.file, 142, "first_row_id"), ContentOffset: optLong(e.file, 144, "content_offset"), ContentSize: optLong(e.file, 145, "content_size_in_bytes"),
		SortOrderID: optLong(e.file, 140, "sort_order_id"),
	}
	d.ReferencedFile, _ = e.file.Get(143, "referenced_data_file").(string)
	d.Key, _ = e.file.Get(131, "key_metadata").([]byte)
	ids, _ := e.file.Get(135, "equality_ids").([]any)
	for _, id := range ids {
		if n, ok := id.(int64); ok {
			d.EqualityIDs = append(d.EqualityIDs, int32(n))
		}
	}
	return d
}

func optLong(r *avro.Record, id int, name string) *int64 {
	if n, ok := r.Get(id, name).(int64); ok {
		return &n
	}
	return nil
}

// Metrics of a column; nil: none.
func (e *Entry) Metrics(id int32) *Metrics {
	m := &Metrics{}
	found := false
	for _, c := range []struct {
		id   int
		name string
		to   **int64
	}{{108, "column_sizes", &m.Size}, {109, "value_counts", &m.Values}, {110, "null_value_counts", &m.Nulls}, {137, "nan_value_counts", &m.NaNs}} {
		if n, ok := e.mapped(c.id, c.name, id).(int64); ok {
			*c.to, found = &n, true
		}
	}
	for _, c := range []struct {
		id   int
		name string
		to   *[]byte
	}{{125, "lower_bounds", &m.Lower}, {128, "upper_bounds", &m.Upper}} {
		if b, ok := e.mapped(c.id, c.name, id).([]byte); ok {
			*c.to, found = b, true
		}
	}
	if !found {
		return nil
	}
	return m
}

// mapped is the value of a key in one of the maps that are written as arrays.
func (e *Entry) mapped(id int, name string, key int32) any {
	list, _ := e.file.Get(id, name).([]any)
	for _, item := range list {
		r, _ := item.(*avro.Record)
		if r == nil {
			continue
		}
		var k, v any
		n := 0
		r.Each(func(_ int, x any) {
			if n == 0 {
				k = x
			} else {
				v = x
			}
			n++
		})
		if k, ok := k.(int64); ok && k == int64(key) {
			return v
		}
	}
	return nil
}
