package filter

import (
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// File is what is known of one data file.
type File interface {
	// Rows is the number of rows.
	Rows() int64
	// Partition is the value of a partition field; ok is false where it is not known.
	Partition(fieldID int32, t *planv1.Type) (v *planv1.Value, ok bool)
	// Metrics are what is known of a column; nil: nothing. Bounds may be NULL or absent.
	Metrics(fieldID int32, t *planv1.Type) *planv1.ColumnMetrics
}

// Entry is a data file as an Iceberg manifest has it, read with its metrics.
func Entry(e *icefile.Entry) File { return entryFile{e} }

type entryFile struct{ *icefile.Entry }

func (e entryFile) Rows() int64 { return e.Records }

func (e entryFile) Partition(id int32, t *planv1.Type) (*planv1.Value, bool) {
	v, ok, err := e.Entry.Partition(id, t)
	return v, ok && err == nil
}

func (e entryFile) Metrics(id int32, t *planv1.Type) *planv1.ColumnMetrics {
	m := e.Entry.Metrics(id)
	if m == nil {
		return nil
	}
	out := &planv1.ColumnMetrics{FieldId: id, ValueCount: m.Values, NullCount: m.Nulls, NanCount: m.NaNs}
	if v, ok := value.Parse(t, m.Lower); ok {
		out.Lower = &planv1.Bound{Value: v}
	}
	if v, ok := value.Parse(t, m.Upper); ok {
		out.Upper = &planv1.Bound{Value: v}
	}
	return out
}

// DataFile is a data file as a task has reported it, with the values of these partition fields.
func DataFile(f *planv1.DataFile, partition []*planv1.PartitionField) File {
	return dataFile{f, partition}
}

type dataFile struct {
	*planv1.DataFile
	partition []*planv1.PartitionField
}

func (d dataFile) Rows() int64 { return d.GetRecordCount() }

func (d dataFile) Partition(id int32, t *planv1.Type) (*planv1.Value, bool) {
	for i, p := range d.partition {
		if p.GetFieldId() == id && i < len(d.GetPartition()) {
			v := d.GetPartition()[i]
			return v, value.IsNull(v) || value.Check(t, v) == nil
		}
	}
	return nil, false
}

func (d dataFile) Metrics(id int32, t *planv1.Type) *planv1.ColumnMetrics {
	for _, m := range d.GetColumns() {
		if m.GetFieldId() == id {
			return m
		}
	}
	return nil
}
