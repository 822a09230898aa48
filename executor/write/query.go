package write

import (
	"fmt"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// Defaults of FileRules.
const (
	defaultCodec        = "zstd"
	defaultRowGroupRows = 122_880
	defaultTargetSize   = 512 << 20
)

// inputRows is the query with its columns named i0, i1, ...: whatever they are called, and if two are called the same.
func (p *plan) inputRows() string {
	names := make([]string, p.inputs)
	for i := range names {
		names[i] = "i" + strconv.Itoa(i)
	}
	return "(\n" + p.task.GetSql() + "\n) AS q(" + strings.Join(names, ", ") + ")"
}

// rowColumn is a column of tableRows. It is qualified: the table may have a column called c0, and ORDER BY looks at output names first.
func rowColumn(n int) string { return fmt.Sprintf("__t.c%d", n) }

// tableRows is the rows as the table has them.
func (p *plan) tableRows() string {
	parts := make([]string, len(p.columns))
	for n, c := range p.columns {
		parts[n] = fmt.Sprintf("%s AS c%d", c.expr, n)
	}
	return "(SELECT " + strings.Join(parts, ", ") + " FROM " + p.inputRows() + ") AS __t"
}

// copySQL writes everything in one pass. Rows that meet in one file come in order only if that file is the single output (DuckDB 1.5.6
// interleaves the row groups of rolled and of partitioned output), so a sorted table without partitions is written to one file and cut
// afterwards.
func (p *plan) copySQL(dir string) string {
	var cols, keys []string
	for n, c := range p.columns {
		if !c.omit {
			cols = append(cols, rowColumn(n)+" AS "+duckdb.Ident(c.alias))
		}
	}
	for _, k := range p.keys {
		if !k.Void {
			cols = append(cols, k.SQL+" AS "+duckdb.Ident(k.alias))
			keys = append(keys, duckdb.Ident(k.alias))
		}
	}
	q := "SELECT " + strings.Join(cols, ", ") + " FROM " + p.tableRows()
	if len(p.sort) > 0 {
		q += " ORDER BY " + strings.Join(p.sort, ", ")
	}
	target, opts := dir, p.fileOptions()
	switch {
	case len(keys) > 0:
		opts = append(opts, "PARTITION_BY ("+strings.Join(keys, ", ")+")", "HIVE_FILE_PATTERN false", "FILENAME_PATTERN 'f{i}'")
	case p.sorted:
		target += "/f0.parquet"
	default:
		opts = append(opts, fmt.Sprintf("FILE_SIZE_BYTES %d", p.targetSize()), "FILENAME_PATTERN 'f{i}'")
	}
	return copyTo(q, target, opts)
}

func copyTo(query, target string, opts []string) string {
	return "COPY (" + query + ") TO " + duckdb.Literal(target) + " (" + strings.Join(opts, ", ") + ")"
}

func (p *plan) targetSize() int64 {
	if n := p.spec.GetFiles().GetTargetFileSizeBytes(); n > 0 {
		return n
	}
	return defaultTargetSize
}

func (p *plan) fileOptions() []string {
	r := p.spec.GetFiles()
	codec := strings.ToLower(r.GetCodec())
	if codec == "" {
		codec = defaultCodec
	}
	rows := r.GetRowGroupRows()
	if rows <= 0 {
		rows = defaultRowGroupRows
	}
	opts := []string{"FORMAT PARQUET", "RETURN_STATS", "COMPRESSION " + duckdb.Literal(codec), fmt.Sprintf("ROW_GROUP_SIZE %d", rows)}
	if codec == "zstd" && r.GetCodecLevel() != 0 {
		opts = append(opts, fmt.Sprintf("COMPRESSION_LEVEL %d", r.GetCodecLevel()))
	}
	if r.GetRowGroupBytes() > 0 && !p.sorted { // DuckDB refuses it where the order of the input counts
		opts = append(opts, fmt.Sprintf("ROW_GROUP_SIZE_BYTES %d", r.GetRowGroupBytes()))
	}
	if strings.EqualFold(r.GetParquetVersion(), "V2") {
		opts = append(opts, "PARQUET_VERSION V2")
	}
	if ids := p.fieldIDs(); ids != "" {
		opts = append(opts, "FIELD_IDS "+ids)
	}
	return opts
}

// fieldIDs is empty for formats without field ids.
func (p *plan) fieldIDs() string {
	if !p.ids() {
		return ""
	}
	var parts []string
	for _, c := range p.columns {
		if c.field.GetId() == 0 {
			return ""
		}
		if c.omit {
			continue
		}
		parts = append(parts, duckdb.Ident(c.alias)+": "+fieldID(c.field))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func fieldID(f *planv1.Field) string {
	t := f.GetType()
	if len(t.GetFields()) == 0 {
		return strconv.Itoa(int(f.GetId()))
	}
	parts := []string{"__duckdb_field_id: " + strconv.Itoa(int(f.GetId()))}
	for n, child := range t.GetFields() {
		name := child.GetName()
		if t.GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT {
			name = entryName(t.GetKind(), n)
		}
		parts = append(parts, duckdb.Ident(name)+": "+fieldID(child))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
