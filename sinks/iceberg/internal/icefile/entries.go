package icefile

import (
	"fmt"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// Status of a manifest entry.
const (
	StatusExisting = 0
	StatusAdded    = 1
	StatusDeleted  = 2
)

// Entry is one entry of an Iceberg manifest.
type Entry struct {
	Status       int64
	Content      int64 // 0: data
	Path         string
	Format       string
	Records      int64
	Size         int64
	SplitOffsets []int64
	partition    *avro.Record
	file         *avro.Record
	record       *avro.Record // the whole entry, of ReadDetails
}

// ReadEntries decodes an Iceberg manifest. With columns, HasColumn can be asked.
func ReadEntries(raw []byte, columns bool, visit func(*Entry) error) error {
	f, err := avro.Open(raw)
	if err != nil {
		return err
	}
	f.Schema.Keep(nil, []int{0, 2}, "status", "data_file")
	ids := []int{134, 100, 101, 102, 103, 104, 132}
	names := []string{"content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "split_offsets"}
	if columns {
		ids, names = append(ids, 108, 109), append(names, "column_sizes", "value_counts")
	}
	f.Schema.Keep([]int{2}, ids, names...)
	return f.Records(func(r *avro.Record) error {
		e, err := readEntry(r)
		if err != nil {
			return err
		}
		return visit(e)
	})
}

func readEntry(r *avro.Record) (*Entry, error) {
	status, ok := r.Get(0, "status").(int64)
	file, isRecord := r.Get(2, "data_file").(*avro.Record)
	if !ok || !isRecord || status < StatusExisting || status > StatusDeleted {
		return nil, fmt.Errorf("%w: not an Iceberg manifest entry", avro.ErrFormat)
	}
	e := &Entry{Status: status, file: file}
	e.Content, _ = file.Get(134, "content").(int64)
	e.Path, _ = file.Get(100, "file_path").(string)
	e.Format, _ = file.Get(101, "file_format").(string)
	e.Records, _ = file.Get(103, "record_count").(int64)
	e.Size, _ = file.Get(104, "file_size_in_bytes").(int64)
	e.partition, _ = file.Get(102, "partition").(*avro.Record)
	offsets, _ := file.Get(132, "split_offsets").([]any)
	for _, o := range offsets {
		if n, ok := o.(int64); ok {
			e.SplitOffsets = append(e.SplitOffsets, n)
		}
	}
	if e.Path == "" {
		return nil, fmt.Errorf("%w: a manifest entry without a path", avro.ErrFormat)
	}
	return e, nil
}

// HasColumn reports whether the metrics speak of the column, and known whether there are metrics at all.
func (e *Entry) HasColumn(id int32) (has, known bool) {
	for _, m := range []struct {
		id   int
		name string
	}{{108, "column_sizes"}, {109, "value_counts"}} {
		list, _ := e.file.Get(m.id, m.name).([]any)
		known = known || len(list) > 0
		for _, item := range list {
			r, _ := item.(*avro.Record)
			if k, ok := r.Get(firstID(r), "key").(int64); ok && k == int64(id) {
				return true, true
			}
		}
	}
	return false, known
}

// firstID is the id of a record's first field: the key of a map that is written as an array.
func firstID(r *avro.Record) int {
	id := 0
	r.Each(func(i int, _ any) {
		if id == 0 {
			id = i
		}
	})
	return id
}

// Partition returns the value of the partition field with this id, of the type. ok is false where the entry has no such field.
func (e *Entry) Partition(id int32, t *planv1.Type) (v *planv1.Value, ok bool, err error) {
	return partitionValue(e.partition, id, t)
}

// PartitionValue is a value of a partition record as the type has it; NULL where the record has no such field.
func PartitionValue(r *avro.Record, id int32, t *planv1.Type) (*planv1.Value, error) {
	v, ok, err := partitionValue(r, id, t)
	if !ok {
		v = &planv1.Value{}
	}
	return v, err
}

// TupleKey is a partition of a spec as a key: values that the format takes for equal are equal.
func TupleKey(partition []*planv1.PartitionField, values []*planv1.Value) string {
	var key []byte
	for i, p := range partition {
		v := values[i]
		if value.IsNull(v) {
			key = append(key, 0)
			continue
		}
		b := value.Append(nil, p.GetResultType(), value.PlusZero(v))
		key = avro.AppendBytes(append(key, 1), b)
	}
	return string(key)
}

func partitionValue(r *avro.Record, id int32, t *planv1.Type) (v *planv1.Value, ok bool, err error) {
	found := false
	var raw any
	if r != nil {
		r.Each(func(i int, val any) {
			if i == int(id) {
				raw, found = val, true
			}
		})
	}
	if !found {
		return nil, false, nil
	}
	if raw == nil {
		return &planv1.Value{}, true, nil
	}
	v, err = typed(t, raw)
	return v, true, err
}

func typed(t *planv1.Type, raw any) (*planv1.Value, error) {
	v := &planv1.Value{}
	switch x := raw.(type) {
	case bool:
		v.Kind = &planv1.Value_Boolean{Boolean: x}
	case int64:
		v.Kind = &planv1.Value_Integer{Integer: x}
	case float64:
		v.Kind = &planv1.Value_Float64{Float64: x}
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_FLOAT32 {
			v.Kind = &planv1.Value_Float32{Float32: float32(x)}
		}
	case string:
		v.Kind = &planv1.Value_String_{String_: x}
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_UUID { // some writers
			u, err := uuid.Parse(x)
			if err != nil {
				return nil, err
			}
			v.Kind = &planv1.Value_Binary{Binary: u[:]}
		}
	case []byte:
		v.Kind = &planv1.Value_Binary{Binary: x}
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_DECIMAL {
			v.Kind = &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: value.Shorten(x), Scale: t.GetScale()}}
		}
	}
	return v, value.Check(t, v)
}

// Count counts the entries of an Iceberg manifest, for lists that do not say.
func Count(raw []byte) (files, rows Counts, err error) {
	var f, r [3]int64
	err = ReadEntries(raw, false, func(e *Entry) error {
		f[e.Status]++
		r[e.Status] += e.Records
		return nil
	})
	files = Counts{Added: &f[StatusAdded], Existing: &f[StatusExisting], Deleted: &f[StatusDeleted]}
	rows = Counts{Added: &r[StatusAdded], Existing: &r[StatusExisting], Deleted: &r[StatusDeleted]}
	return files, rows, err
}
