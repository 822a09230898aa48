package plan

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Distribution says how rows are spread over the tasks of a partitioned write.
type Distribution string

// Distributions. Unset: by hash where a task would meet many partitions and the rows have moved already.
const (
	DistributionUnset Distribution = ""
	DistributionNone  Distribution = "none" // each task writes what it has
	DistributionHash  Distribution = "hash" // the rows of one table partition meet in one task
)

// DistributionByName reads the value of the table property write.distribution-mode. Rows of one range meet in one task by hash, too.
func DistributionByName(value string) (Distribution, error) {
	switch strings.ToLower(value) {
	case "":
		return DistributionUnset, nil
	case "none":
		return DistributionNone, nil
	case "hash", "range":
		return DistributionHash, nil
	}
	return DistributionUnset, fmt.Errorf("write.distribution-mode is %q; it can be none, hash or range", value)
}

// pendingWrite is a write whose rows are on their way to the partitions of an exchange.
type pendingWrite struct {
	node    *Node
	below   int32 // stage
	columns []*planv1.Column
}

func (b *builder) placeWrite(st Stage, node *Node) error {
	if err := b.guard(&st); err != nil {
		return err
	}
	keys, why := b.distributionKeys(st)
	if why != "" {
		st.Notes = append(st.Notes, why)
	}
	if len(keys) == 0 {
		st.work = b.writeWork(st.sql)
		st.Plan = &Node{Op: node.Op, Label: node.Label, Details: node.Details, Inputs: []*Node{st.Plan}}
		b.add(st)
		return nil
	}
	text, columns := numbered(st.sql, st.columns)
	w := &pendingWrite{node: node, columns: columns}
	ex := &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Partitions: b.req.Tuning.Partitions}
	if ex.Partitions <= 0 {
		total := int64(0)
		for _, n := range st.Split.Bytes {
			total += n
		}
		ex.Partitions = b.partitionsFor(total)
	}
	list := []string{"*"}
	for i, k := range keys {
		name := fmt.Sprintf("k%d", i)
		list = append(list, "CAST("+k+" AS VARCHAR) AS "+name)
		ex.Keys = append(ex.Keys, int32(len(columns)+i))
	}
	st.columns = slices.Clone(columns)
	for i := range keys {
		st.columns = append(st.columns, &planv1.Column{Name: fmt.Sprintf("k%d", i), EngineType: "VARCHAR", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}})
	}
	st.sql = "SELECT " + strings.Join(list, ", ") + " FROM (\n" + text + "\n) AS r"
	st.Notes = append(st.Notes, "rows of one partition of the table go to one task")
	w.below = b.keep(st, ex)
	b.pendingWrite = w
	if b.fanOut == 1 {
		return b.finishWrite()
	}
	return nil
}

// finishWrite adds the writing stage above an exchange by the table's partitions, once that exchange is measured or will never be.
func (b *builder) finishWrite() error {
	w := b.pendingWrite
	if w == nil {
		return nil
	}
	m, known := b.measured[w.below]
	if !known && b.fanOut > 1 {
		return nil
	}
	b.pendingWrite = nil
	below := b.plan.Stages[w.below]
	sizes := make([]int64, below.work.GetExchange().GetPartitions())
	copy(sizes, m.Bytes)
	out := Stage{Inputs: []int32{w.below}, columns: w.columns, Repeatable: true}
	for _, g := range b.coalesce(sizes, known) {
		bytes := int64(0)
		for _, p := range g {
			bytes += sizes[p]
		}
		out.Split.Shares = append(out.Split.Shares, []*planv1.Source{exchangeSource(gatherView, below, g)})
		out.Split.Bytes = append(out.Split.Bytes, bytes)
	}
	if len(out.Split.Shares) == 1 {
		out.Split.Reason = "its input is small or has one partition"
	}
	names := make([]string, len(w.columns))
	for i, c := range w.columns {
		names[i] = c.GetName()
	}
	out.work = b.writeWork("SELECT " + strings.Join(names, ", ") + " FROM " + gatherView)
	out.Plan = &Node{Op: w.node.Op, Label: w.node.Label, Details: w.node.Details, Inputs: []*Node{{Op: OpRead, Stage: w.below}}}
	b.add(out)
	return nil
}

// distributionKeys are the expressions whose equality means the same partition of the table, over columns c0, c1, …. None: the rows stay
// where they are. why is for EXPLAIN.
func (b *builder) distributionKeys(st Stage) (keys []string, why string) {
	spec := b.req.Spec
	if len(spec.GetPartition()) == 0 {
		return nil, ""
	}
	switch {
	case b.req.Distribution == DistributionNone:
		return nil, ""
	case st.Tasks() == 1:
		return nil, ""
	case b.req.Distribution == DistributionUnset && (len(st.Inputs) == 0 || !SortForPartitions(spec)):
		return nil, ""
	}
	for _, c := range st.columns {
		if c.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_UNSPECIFIED {
			return nil, fmt.Sprintf("rows are not distributed by partition: type %s of column %s does not pass between executors", c.GetEngineType(), c.GetName())
		}
	}
	for _, f := range spec.GetPartition() {
		k, ok := b.partitionKey(f)
		if ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, "rows are not distributed by partition: no partition column is a plain column of the query"
	}
	return keys, ""
}

// partitionKey is an expression that is equal where a partition field is, or finer in nothing: rows of one partition share its value. ok is
// false for constants and for fields of structs, which need no part in it: the other keys still bring a partition's rows together.
func (b *builder) partitionKey(f *planv1.PartitionField) (string, bool) {
	for _, c := range b.req.Output {
		if c.GetField().GetId() != f.GetSourceId() || c.GetInput() < 0 {
			continue
		}
		col := fmt.Sprintf("c%d", c.GetInput())
		if c.GetCastType() != "" {
			col = "CAST(" + col + " AS " + c.GetCastType() + ")"
		}
		return clusterExpression(f, c.GetField().GetType(), col)
	}
	return "", false
}

// clusterExpression is coarser than or equal to the partition value. Where DuckDB has no such expression the field takes no part.
func clusterExpression(f *planv1.PartitionField, t *planv1.Type, col string) (string, bool) {
	switch f.GetTransform() {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		switch t.GetKind() {
		case planv1.TypeKind_TYPE_KIND_FLOAT32, planv1.TypeKind_TYPE_KIND_FLOAT64:
			return "(" + col + " + 0)", true // -0.0 and 0.0 are one partition
		case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
			return "epoch_us(" + col + ")", true
		case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
			return "epoch_ns(" + col + ")", true
		}
		return col, true
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		return bucketExpression(f.GetParam(), t, col)
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return truncateExpression(f.GetParam(), t, col)
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH, planv1.TransformKind_TRANSFORM_KIND_DAY, planv1.TransformKind_TRANSFORM_KIND_HOUR:
		unit := map[planv1.TransformKind]string{
			planv1.TransformKind_TRANSFORM_KIND_YEAR: "year", planv1.TransformKind_TRANSFORM_KIND_MONTH: "month",
			planv1.TransformKind_TRANSFORM_KIND_DAY: "day", planv1.TransformKind_TRANSFORM_KIND_HOUR: "hour",
		}[f.GetTransform()]
		switch t.GetKind() {
		case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
			col = "make_timestamp(epoch_us(" + col + "))" // in UTC, whatever the session's time zone
		case planv1.TypeKind_TYPE_KIND_DATE, planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		default:
			return "", false
		}
		return "date_trunc('" + unit + "', " + col + ")", true
	}
	return "", false
}

// bucketExpression uses the hash functions that executors give their DuckDB.
func bucketExpression(n int32, t *planv1.Type, col string) (string, bool) {
	if n < 1 {
		return "", false
	}
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16, planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64:
		return fmt.Sprintf("(__signet_hash_long(CAST(%s AS BIGINT)) %% %d)", col, n), true
	case planv1.TypeKind_TYPE_KIND_STRING:
		return fmt.Sprintf("(__signet_hash_text(%s) %% %d)", col, n), true
	case planv1.TypeKind_TYPE_KIND_UUID:
		return fmt.Sprintf("(__signet_hash_uuid(CAST(%s AS VARCHAR)) %% %d)", col, n), true
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		return fmt.Sprintf("(__signet_hash_bytes(%s) %% %d)", col, n), true
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return fmt.Sprintf("(__signet_hash_long(epoch_us(%s)) %% %d)", col, n), true
	case planv1.TypeKind_TYPE_KIND_DATE:
		return fmt.Sprintf("(__signet_hash_long(CAST(%s - DATE '1970-01-01' AS BIGINT)) %% %d)", col, n), true
	}
	return "", false
}

func truncateExpression(w int32, t *planv1.Type, col string) (string, bool) {
	if w < 1 {
		return "", false
	}
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16, planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64:
		return fmt.Sprintf("CAST(floor(CAST(%s AS DECIMAL(19, 0)) / %d) AS DECIMAL(19, 0))", col, w), true
	case planv1.TypeKind_TYPE_KIND_STRING:
		return fmt.Sprintf("left(%s, %d)", col, w), true
	}
	return "", false
}
