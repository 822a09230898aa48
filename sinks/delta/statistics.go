package delta

import (
	"fmt"
	"slices"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// defaultPrefix is how many characters of strings the statistics have if the table does not say so.
const defaultPrefix = 32

// layout says which columns the files' statistics have. Properties that cannot be understood are the table's defaults.
func (st *state) layout(s *schema.Schema) (*stats.Layout, error) {
	l, err := stats.NewLayout(s, st.PartitionBy, st.Statistics, st.Clustered...)
	if err != nil {
		l, _ = stats.NewLayout(s, st.PartitionBy, nil, st.Clustered...)
	}
	return l, err
}

// metrics says what executors are to find out about columns: bounds of those that statistics have bounds of, and counts of NULLs.
func (st *state) metrics(w *planv1.WriteSpec, s *schema.Schema) {
	l, err := st.layout(s)
	if err != nil {
		w.Warnings = append(w.Warnings, fmt.Sprintf("statistics are those of Delta's defaults: %v", err))
	}
	prefix := defaultPrefix
	if n, err := strconv.Atoi(st.Statistics[propStringPrefix]); err == nil && n > 0 {
		prefix = min(n, 1<<20)
	}
	w.Files.Metrics = map[int32]*planv1.MetricsMode{}
	for i, f := range leafFields(w.GetSchema(), l) {
		mode := &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_FULL}
		switch l.Leaves()[i].Type.Kind {
		case schema.Array, schema.Map: // what is counted are their elements
			continue
		case schema.Binary, schema.Boolean:
			mode.Kind = planv1.MetricsKind_METRICS_KIND_COUNTS
		case schema.String: // a greatest value that was cut may take up to twice the prefix
			mode.Kind, mode.Length = planv1.MetricsKind_METRICS_KIND_TRUNCATE, int32(2*prefix)
		}
		w.Files.Metrics[f.GetId()] = mode
	}
}

// leafFields are the fields of a layout's leaves, in their order.
func leafFields(s *planv1.Schema, l *stats.Layout) []*planv1.Field {
	out := make([]*planv1.Field, 0, len(l.Leaves()))
	for _, leaf := range l.Leaves() {
		var f *planv1.Field
		fields := s.GetFields()
		for _, name := range leaf.Path {
			i := slices.IndexFunc(fields, func(f *planv1.Field) bool { return f.GetName() == name })
			if i < 0 { // never: the layout is of this very schema
				f = nil
				break
			}
			f, fields = fields[i], fields[i].GetType().GetFields()
		}
		out = append(out, f)
	}
	return out
}

// statistician writes the statistics of files.
type statistician struct {
	layout *stats.Layout
	places map[int32]int // of columns in the layout, by field id
}

func newStatistician(p *plan) *statistician {
	l, _ := p.layout(p.schema) // the warning came with the write spec
	out := &statistician{layout: l, places: map[int32]int{}}
	for i, f := range leafFields(schemaOf(p.schema), l) {
		out.places[f.GetId()] = i
	}
	return out
}

// text is what the log says of a file's rows.
func (st *statistician) text(f *planv1.DataFile) (*string, error) {
	file := &stats.File{Records: f.GetRecordCount(), Columns: make([]stats.Column, len(st.layout.Leaves()))}
	for i := range file.Columns {
		file.Columns[i].Nulls = -1
	}
	for _, m := range f.GetColumns() {
		i, ok := st.places[m.GetFieldId()]
		if !ok {
			continue
		}
		leaf := st.layout.Leaves()[i]
		if leaf.Type.Kind == schema.Array || leaf.Type.Kind == schema.Map {
			continue
		}
		c := &file.Columns[i]
		if m.NullCount != nil {
			c.Nulls = m.GetNullCount()
		}
		c.NaNFree = m.NanCount != nil && m.GetNanCount() == 0
		var err error
		if c.Min, err = boundOf(leaf.Type, m.GetLower()); err == nil {
			c.Max, err = boundOf(leaf.Type, m.GetUpper())
		}
		if err != nil {
			return nil, fmt.Errorf("bounds of column %s: %w", leaf.Name(), err)
		}
	}
	text, err := st.layout.JSON(file)
	return &text, err
}

// boundOf reads a bound; none is NULL.
func boundOf(t schema.Type, b *planv1.Bound) (value.Value, error) {
	return valueOf(t, b.GetValue())
}
