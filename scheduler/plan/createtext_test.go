package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// What SHOW CREATE TABLE prints is read again as the same definition.
func TestCreateText_IsReadAgain(t *testing.T) {
	const text = `CREATE TABLE lake.x."odd name" (id BIGINT NOT NULL COMMENT 'it''s', "a b" STRUCT(x INTEGER, y VARCHAR[]), ts TIMESTAMP, d DOUBLE DEFAULT 1.5, n INTEGER NOT NULL DEFAULT -7 COMMENT 'n', b BLOB DEFAULT X'00ff', t VARCHAR DEFAULT 'it''s', o BOOLEAN DEFAULT TRUE, p DECIMAL(9,2) DEFAULT -0.50) ` +
		`PARTITIONED BY (day(ts), bucket(4, id)) ORDERED BY (id DESC, ts, truncate(3, id) NULLS LAST) WITH ('format-version' = '2', 'k' = 'v')`
	s, err := sql.Parse(text)
	require.NoError(t, err)
	def, err := Definition(s.(*sql.CreateTable), nil)
	require.NoError(t, err)
	ids := map[string]int32{}
	for i, f := range def.GetSchema().GetFields() {
		f.Id = int32(i + 1)
		ids[f.GetName()] = f.GetId()
	}
	d := &sinkv1.DescribeTableResponse{Schema: def.GetSchema(), FormatVersion: 2, Properties: map[string]string{"k": "v"}}
	for _, p := range def.GetPartition() {
		d.Partition = append(d.Partition, &planv1.PartitionField{SourceId: ids[p.GetColumn()], Transform: p.GetTransform(), Param: p.GetParam()})
	}
	for _, o := range def.GetSort() {
		d.Sort = append(d.Sort, &planv1.SortField{SourceId: ids[o.GetColumn()], Transform: o.GetTransform(), Param: o.GetParam(), Descending: o.GetDescending(), NullsFirst: o.GetNullsFirst()})
	}
	require.Equal(t, text, CreateText(`lake.x."odd name"`, d))
}
