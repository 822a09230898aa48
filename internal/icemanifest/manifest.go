// Package icemanifest reads the entries of Iceberg manifests with what they inherit from the manifest list, and keeps their encoded parts, so that
// they can be written again, or compared, without being decoded whole.
//
// Invariants:
//   - No input makes the package panic.
//   - An entry's sequence numbers, snapshot and first row id are what a reader of the table would find.
package icemanifest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/signet-io/signet/internal/avro"
)

// Status of an entry.
const (
	Existing = 0
	Added    = 1
	Deleted  = 2
)

// Content of a file.
const (
	Data            = 0
	PositionDeletes = 1
	EqualityDeletes = 2
)

// ErrManifest is wrapped by errors about a manifest that is none, or that lacks what every reader needs.
var ErrManifest = errors.New("not an Iceberg manifest")

// Record is what the manifest list says of a manifest, as far as entries inherit it.
type Record struct {
	Content        int32
	SnapshotID     int64
	SequenceNumber int64
	FirstRowID     *int64
}

// Entry is one entry of a manifest.
type Entry struct {
	Status       int64
	SnapshotID   int64 // that added it, or deleted it
	Sequence     int64 // data sequence number
	FileSequence int64
	FirstRowID   *int64 // data files of format version 3

	Content       int64
	Path          string
	Format        string
	Records       int64
	Size          int64
	Referenced    string // the only data file that a delete file is about; empty: several
	ContentOffset *int64 // deletion vectors
	ContentSize   *int64

	Partition *avro.Record
	file      *avro.Record
}

// Live reports whether the file is in the table.
func (e *Entry) Live() bool { return e.Status != Deleted }

// Vector reports whether the entry is a deletion vector.
func (e *Entry) Vector() bool { return e.Content == PositionDeletes && e.ContentOffset != nil }

// Key names the file once in a table: several deletion vectors share a path.
func (e *Entry) Key() string {
	key := string(rune('0'+e.Content)) + e.Path
	if e.ContentOffset != nil {
		return fmt.Sprintf("%s#%d", key, *e.ContentOffset)
	}
	return key
}

// Encoded returns the encoded value of a member of data_file; see avro.Record.Encoded.
func (e *Entry) Encoded(id int, names ...string) (b []byte, null bool, err error) {
	return e.file.Encoded(id, names...)
}

// Manifest is a manifest in memory.
type Manifest struct {
	Meta    map[string]string // of the file's header
	Tuple   json.RawMessage   // Avro schema of the partition record
	Entries []*Entry
}

// fileIDs are the members of data_file that are decoded.
var (
	fileIDs   = []int{134, 100, 101, 102, 103, 104, 142, 143, 144, 145}
	fileNames = []string{
		"content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "first_row_id", "referenced_data_file", "content_offset",
		"content_size_in_bytes",
	}
)

// Read reads a manifest. The entries share the bytes of its decompressed blocks.
func Read(raw []byte, list Record) (*Manifest, error) {
	f, err := avro.Open(raw)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Meta: f.Meta}
	if m.Tuple, err = tupleSchema(f.Meta["avro.schema"]); err != nil {
		return nil, err
	}
	f.Schema.Keep(nil, []int{0, 1, 2, 3, 4}, "status", "snapshot_id", "data_file", "sequence_number", "file_sequence_number")
	f.Schema.Keep([]int{2}, fileIDs, fileNames...)
	f.Schema.Spans(2)
	next := list.FirstRowID
	err = f.Records(func(r *avro.Record) error {
		e, err := read(r, list)
		if err != nil {
			return err
		}
		if e.FirstRowID == nil && next != nil && e.Content == Data && e.Live() { // S: inherited in the order of the entries
			id := *next
			after := id + e.Records
			e.FirstRowID, next = &id, &after
		}
		m.Entries = append(m.Entries, e)
		return nil
	})
	return m, err
}

func read(r *avro.Record, list Record) (*Entry, error) {
	status, ok := r.Get(0, "status").(int64)
	file, isRecord := r.Get(2, "data_file").(*avro.Record)
	if !ok || !isRecord || status < Existing || status > Deleted {
		return nil, fmt.Errorf("%w: an entry without status or file", ErrManifest)
	}
	e := &Entry{Status: status, file: file, SnapshotID: list.SnapshotID, Sequence: list.SequenceNumber, FileSequence: list.SequenceNumber}
	if v, ok := r.Get(1, "snapshot_id").(int64); ok {
		e.SnapshotID = v
	}
	if v, ok := r.Get(3, "sequence_number").(int64); ok {
		e.Sequence = v
	}
	if v, ok := r.Get(4, "file_sequence_number").(int64); ok {
		e.FileSequence = v
	}
	e.Content, _ = file.Get(134, "content").(int64)
	e.Path, _ = file.Get(100, "file_path").(string)
	e.Format, _ = file.Get(101, "file_format").(string)
	e.Records, _ = file.Get(103, "record_count").(int64)
	e.Size, _ = file.Get(104, "file_size_in_bytes").(int64)
	e.Partition, _ = file.Get(102, "partition").(*avro.Record)
	e.Referenced, _ = file.Get(143, "referenced_data_file").(string)
	e.FirstRowID, e.ContentOffset, e.ContentSize = long(file, 142, "first_row_id"), long(file, 144, "content_offset"), long(file, 145, "content_size_in_bytes")
	if e.Content == PositionDeletes && e.Referenced == "" { // writers that do not say it so give equal bounds
		lower, okL := e.Mapped(125, "lower_bounds", pathColumn, true)
		upper, okU := e.Mapped(128, "upper_bounds", pathColumn, true)
		if okL && okU && bytes.Equal(lower, upper) {
			e.Referenced = string(lower)
		}
	}
	switch {
	case e.Path == "" || e.Records < 0 || e.Size < 0:
		return nil, fmt.Errorf("%w: file %q of %d rows in %d bytes", ErrManifest, e.Path, e.Records, e.Size)
	case e.Content < Data || e.Content > EqualityDeletes || (e.Content == Data) != (list.Content == 0):
		return nil, fmt.Errorf("%w: file %q has content %d in a manifest of content %d", ErrManifest, e.Path, e.Content, list.Content)
	}
	return e, nil
}

// pathColumn is the reserved field id of the column file_path in position delete files.
const pathColumn = 2147483546

// Mapped finds the value of a key in a map that is written as an array of pairs: a number as it is encoded, or the bytes.
func (e *Entry) Mapped(id int, name string, key int32, isBytes bool) ([]byte, bool) {
	b, null, err := e.Encoded(id, name)
	if err != nil || null {
		return nil, false
	}
	long := func() (int64, bool) {
		v, n := binary.Varint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	for {
		n, ok := long()
		if !ok || n == 0 {
			return nil, false
		}
		if n < 0 { // the size of the block follows
			n = -n
			if _, ok := long(); !ok {
				return nil, false
			}
		}
		for ; n > 0; n-- {
			k, ok := long()
			if !ok {
				return nil, false
			}
			v := b
			size, ok := long()
			if !ok || isBytes && (size < 0 || size > int64(len(b))) {
				return nil, false
			}
			if isBytes {
				v, b = b[:size], b[size:]
			}
			if k == int64(key) {
				return v, true
			}
		}
	}
}

func long(r *avro.Record, id int, name string) *int64 {
	if v, ok := r.Get(id, name).(int64); ok {
		return &v
	}
	return nil
}

// tupleSchema takes the schema of the partition record out of a manifest's.
func tupleSchema(text string) (json.RawMessage, error) {
	type record struct {
		Fields []struct {
			Name string          `json:"name"`
			Type json.RawMessage `json:"type"`
			ID   int             `json:"field-id"`
		} `json:"fields"`
	}
	member := func(raw json.RawMessage, id int, name string) (json.RawMessage, error) {
		var r record
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("%w: its schema: %w", ErrManifest, err)
		}
		for _, f := range r.Fields {
			if f.ID == id && id != 0 || f.Name == name {
				return f.Type, nil
			}
		}
		return nil, fmt.Errorf("%w: its schema has no %s", ErrManifest, name)
	}
	file, err := member(json.RawMessage(text), 2, "data_file")
	if err != nil {
		return nil, err
	}
	return member(file, 102, "partition")
}

// comparedIDs are the members of data_file that a file keeps wherever it is listed.
var comparedIDs = []struct {
	id   int
	name string
}{
	{134, "content"},
	{100, "file_path"},
	{101, "file_format"},
	{102, "partition"},
	{103, "record_count"},
	{104, "file_size_in_bytes"},
	{108, "column_sizes"},
	{109, "value_counts"},
	{110, "null_value_counts"},
	{137, "nan_value_counts"},
	{125, "lower_bounds"},
	{128, "upper_bounds"},
	{131, "key_metadata"},
	{132, "split_offsets"},
	{135, "equality_ids"},
	{140, "sort_order_id"},
	{143, "referenced_data_file"},
	{144, "content_offset"},
	{145, "content_size_in_bytes"},
}

var seed = maphash.MakeSeed()

// Sum is a hash of everything that an entry keeps wherever it is listed: its file, sequence numbers and first row id. The snapshot is part of it unless the
// entry is deleted: then it names the one that deleted it. It differs between processes.
func (e *Entry) Sum() (uint64, error) { return e.sum(e.Sequence, e.FileSequence) }

// FileSum is a hash of the file alone, with its metrics and partition: of what it keeps where another snapshot adds it once more. It differs between processes.
func (e *Entry) FileSum() (uint64, error) { return e.sum() }

func (e *Entry) sum(numbers ...int64) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(seed)
	var n [8]byte
	number := func(v int64) {
		binary.LittleEndian.PutUint64(n[:], uint64(v))
		_, _ = h.Write(n[:]) // a hash never fails
	}
	for _, v := range numbers {
		number(v)
	}
	for _, c := range comparedIDs {
		b, null, err := e.file.Encoded(c.id, c.name)
		switch {
		case err != nil:
			return 0, err
		case c.id == 134: // absent in format version 1
			number(e.Content)
		case null:
			number(-1)
		default:
			number(int64(len(b)))
			_, _ = h.Write(b)
		}
	}
	return h.Sum64(), nil
}
