package duckdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// CheckInt96 refuses a query whose sources have INT96 timestamps that are finer than a microsecond: DuckDB cuts them without a word, and no table here
// stores them. Columns that the query does not read are not looked at. Callers that keep the values do so; files of no INT96 column cost nothing or
// one look at their schemas.
func (i *Instance) CheckInt96(ctx context.Context, query string) error {
	var plan string // made when the first INT96 column is met
	for _, s := range i.sources {
		if !s.mayHaveInt96() {
			continue
		}
		schemas, err := i.schemasByPath(ctx, s.files())
		if err != nil {
			return i.inSource(s, err)
		}
		for _, f := range s.files() {
			columns := int96Columns(schemas[f.GetPath()])
			if len(columns) == 0 {
				continue
			}
			if plan == "" {
				if plan, err = i.planText(ctx, query); err != nil {
					return err
				}
			}
			for _, c := range columns {
				if !strings.Contains(plan, strings.ToLower(c)) {
					continue
				}
				if err := checkInt96(ctx, f, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// mayHaveInt96 reports whether any bound column is, or has inside, a timestamp.
func (b *boundSource) mayHaveInt96() bool {
	if t := b.src.GetTable(); t != nil {
		return hasTimestamp(t.GetSchema().GetFields())
	}
	if parquet, _ := IsParquetReader(b.src.GetFile().GetFunction()); !parquet {
		return false
	}
	for _, c := range b.src.GetFile().GetColumns() {
		if strings.Contains(c.GetEngineType(), "TIMESTAMP") {
			return true
		}
	}
	return len(b.src.GetFile().GetColumns()) == 0
}

func hasTimestamp(fields []*planv1.Field) bool {
	for _, f := range fields {
		switch f.GetType().GetKind() {
		case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
			return true
		}
		if hasTimestamp(f.GetType().GetFields()) {
			return true
		}
	}
	return false
}

// int96Columns are the top-level columns that are, or have inside, an INT96.
func int96Columns(s *parquetSchema) []string {
	if s == nil {
		return nil
	}
	var out []string
	for _, c := range s.root.children {
		if c.hasInt96() {
			out = append(out, c.name)
		}
	}
	return out
}

func (n *parquetNode) hasInt96() bool {
	if n.physical == "INT96" {
		return true
	}
	for _, c := range n.children {
		if c.hasInt96() {
			return true
		}
	}
	return false
}

// planText is DuckDB's plan of a query in lower case; what the scans do not read is not in it.
func (i *Instance) planText(ctx context.Context, query string) (string, error) {
	var key string
	var text []byte
	err := i.conn.QueryRowContext(ctx, "EXPLAIN (FORMAT json) "+query).Scan(&key, &text)
	return strings.ToLower(string(text)), err
}

// checkInt96 reads one column of a pinned file, in the row groups that the pin's rows are in.
func checkInt96(ctx context.Context, f *planv1.PinnedFile, column string) (err error) {
	in, err := file.OpenParquetFile(f.GetPath(), false)
	if err != nil {
		return fmt.Errorf("source %s: %w", displayName(f), err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	first := int64(0)
	for g := range in.NumRowGroups() {
		group := in.RowGroup(g)
		end := first + group.NumRows()
		wanted := f.GetEndRow() == 0 || first < f.GetEndRow() && end > f.GetFirstRow()
		first = end
		if !wanted {
			continue
		}
		for n := range in.MetaData().Schema.NumColumns() {
			desc := in.MetaData().Schema.Column(n)
			if desc.PhysicalType() != parquet.Types.Int96 || desc.ColumnPath()[0] != column {
				continue
			}
			fine, err := hasFineInt96(ctx, group, n)
			if err != nil {
				return fmt.Errorf("source %s: column %s: %w", displayName(f), desc.Path(), err)
			}
			if fine {
				return userErrorf("write the file again with timestamps of microseconds (Spark: spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS), or leave the column out of the query",
					"%s: column %q has INT96 timestamps that are finer than a microsecond, which would be cut off", displayName(f), desc.Path())
			}
		}
	}
	return nil
}

func hasFineInt96(ctx context.Context, group *file.RowGroupReader, column int) (bool, error) {
	chunk, err := group.Column(column)
	if err != nil {
		return false, err
	}
	r, ok := chunk.(*file.Int96ColumnChunkReader)
	if !ok {
		return false, fmt.Errorf("want INT96, have %T", chunk)
	}
	const batch = 8192
	values, def, rep := make([]parquet.Int96, batch), make([]int16, batch), make([]int16, batch)
	for r.HasNext() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		_, n, err := r.ReadBatch(batch, values, def, rep)
		if err != nil {
			return false, err
		}
		for _, v := range values[:n] {
			if binary.LittleEndian.Uint64(v[:8])%1000 != 0 { // nanoseconds of the day
				return true, nil
			}
		}
	}
	return false, r.Err()
}
