package iceberg

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

const (
	defaultTruncation  = 16
	defaultMetricsMax  = 100
	maxTruncation      = 1 << 20
	defaultMetricsText = "truncate(16)"
)

var truncateText = regexp.MustCompile(`^truncate\(\s*(\d+)\s*\)$`)

func parseMode(text string) (*planv1.MetricsMode, bool) {
	switch text = strings.ToLower(strings.TrimSpace(text)); text {
	case "none":
		return &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_NONE}, true
	case "counts":
		return &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_COUNTS}, true
	case "full":
		return &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_FULL}, true
	}
	if m := truncateText.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= maxTruncation {
			return truncation(n), true
		}
	}
	return nil, false
}

func truncation(n int) *planv1.MetricsMode {
	return &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_TRUNCATE, Length: int32(n)}
}

// metricsModes gives each leaf its mode, by the rules of the reference implementation: the column's own property; else, for columns that rows are sorted
// by, at least truncate(16); else the table's default; else truncate(16) for the first hundred leaves and none for the rest.
func (p *properties) metricsModes(schema *meta.Schema, order *meta.SortOrder) map[int32]*planv1.MetricsMode {
	fallback := p.mode(propMetricsDefault)
	inferred := map[int32]bool(nil)
	if fallback == nil {
		fallback, inferred = truncation(defaultTruncation), firstLeaves(schema, int(p.positive(propMetricsMax, defaultMetricsMax)))
	}
	sorted := map[int32]bool{}
	for _, f := range order.Fields {
		if f.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_IDENTITY {
			sorted[f.GetSourceId()] = true
		}
	}
	p.strayColumns(schema)
	out := map[int32]*planv1.MetricsMode{}
	schema.Walk(func(n *meta.Node) {
		id := n.Field.GetId()
		if !n.Leaf() {
			return
		}
		mode := p.mode(propMetricsColumn + n.Path)
		switch {
		case mode != nil:
		case sorted[id] && fallback.GetKind() <= planv1.MetricsKind_METRICS_KIND_COUNTS:
			mode = truncation(defaultTruncation)
		case inferred != nil && !inferred[id] && !sorted[id]:
			return
		default:
			mode = fallback
		}
		if n.Repeated && mode.GetKind() > planv1.MetricsKind_METRICS_KIND_COUNTS {
			mode = &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_COUNTS} // bounds of elements say nothing about rows
		}
		out[id] = mode
	})
	return out
}

// strayColumns warns of modes for columns that have no metrics.
func (p *properties) strayColumns(schema *meta.Schema) {
	for _, key := range slices.Sorted(maps.Keys(p.all)) {
		if path, ok := strings.CutPrefix(key, propMetricsColumn); ok {
			if n := schema.Lookup(path); n == nil || !n.Leaf() {
				p.warn(key, "the table has no such column of a primitive type")
			}
		}
	}
}

// mode reads a property that holds a metrics mode; absent or unusable: nil.
func (p *properties) mode(key string) *planv1.MetricsMode {
	text, ok := p.all[key]
	if !ok {
		return nil
	}
	m, ok := parseMode(text)
	if !ok {
		p.warn(key, "it must be none, counts, truncate(LENGTH) or full; the default is "+defaultMetricsText)
	}
	return m
}

// firstLeaves picks leaves level by level within each column, as the reference implementation counts them.
func firstLeaves(schema *meta.Schema, limit int) map[int32]bool {
	out := map[int32]bool{}
	var take func([]*planv1.Field)
	take = func(fields []*planv1.Field) {
		for _, f := range fields {
			if len(out) < limit && !meta.IsNested(f.GetType()) {
				out[f.GetId()] = true
			}
		}
		for _, f := range fields {
			if len(out) < limit {
				take(f.GetType().GetFields())
			}
		}
	}
	take(schema.Fields)
	return out
}
