package delta

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/plugins/sdk"
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

// statistician writes the statistics of files, one after the other.
type statistician struct {
	layout *stats.Layout
	places map[int32]int // of columns in the layout, by field id
	file   stats.File
	text   []byte
}

func newStatistician(p *plan) *statistician {
	l, _ := p.layout(p.schema) // the warning came with the write spec
	out := &statistician{layout: l, places: map[int32]int{}, file: stats.File{Columns: make([]stats.Column, len(l.Leaves()))}}
	for i, f := range leafFields(schemaOf(p.schema), l) {
		if kind := l.Leaves()[i].Type.Kind; kind != schema.Array && kind != schema.Map {
			out.places[f.GetId()] = i
		}
	}
	return out
}

// of is what the log says of a file's rows.
func (st *statistician) of(f sdk.LeanFile) (*string, error) {
	st.file.Records = f.GetRecordCount()
	for i := range st.file.Columns {
		st.file.Columns[i] = stats.Column{Nulls: -1}
	}
	var m manifest.Metrics
	for _, raw := range f.Columns {
		read := st.lean
		if !m.Decode(raw) {
			read = func(*manifest.Metrics) error { return st.metrics(raw) }
		}
		if err := read(&m); err != nil {
			return nil, err
		}
	}
	var err error
	if st.text, err = st.layout.AppendJSON(st.text[:0], &st.file); err != nil {
		return nil, err
	}
	text := string(st.text)
	return &text, nil
}

// lean takes the metrics of a column as most are.
func (st *statistician) lean(m *manifest.Metrics) error {
	i, ok := st.places[m.FieldID]
	if !ok {
		return nil
	}
	c := &st.file.Columns[i]
	if m.HasNulls {
		c.Nulls = m.Nulls
	}
	c.NaNFree = m.HasNaNs && m.NaNs == 0
	return st.bounds(i, leanValue(&m.Lower), leanValue(&m.Upper))
}

func leanValue(s *manifest.Scalar) value.Value {
	switch s.Kind {
	case manifest.IntegerScalar:
		return value.OfInt(s.Integer)
	case manifest.FloatScalar:
		return value.OfFloat64(s.Float)
	case manifest.StringScalar:
		return value.OfString(string(s.Text))
	}
	return value.Value{}
}

// metrics takes those of any column.
func (st *statistician) metrics(raw []byte) error {
	m := &planv1.ColumnMetrics{}
	if err := proto.Unmarshal(raw, m); err != nil {
		return fmt.Errorf("metrics of a column: %w", err)
	}
	i, ok := st.places[m.GetFieldId()]
	if !ok {
		return nil
	}
	c := &st.file.Columns[i]
	if m.NullCount != nil {
		c.Nulls = m.GetNullCount()
	}
	c.NaNFree = m.NanCount != nil && m.GetNanCount() == 0
	leaf := st.layout.Leaves()[i]
	lower, err := valueOf(leaf.Type, m.GetLower().GetValue())
	if err != nil {
		return fmt.Errorf("bounds of column %s: %w", leaf.Name(), err)
	}
	upper, err := valueOf(leaf.Type, m.GetUpper().GetValue())
	if err != nil {
		return fmt.Errorf("bounds of column %s: %w", leaf.Name(), err)
	}
	return st.bounds(i, lower, upper)
}

// bounds of a column; NULL is none.
func (st *statistician) bounds(i int, lower, upper value.Value) error {
	leaf := st.layout.Leaves()[i]
	for _, v := range []value.Value{lower, upper} {
		if err := value.Check(leaf.Type, v); err != nil {
			return fmt.Errorf("bounds of column %s: %w", leaf.Name(), err)
		}
	}
	st.file.Columns[i].Min, st.file.Columns[i].Max = lower, upper
	return nil
}
