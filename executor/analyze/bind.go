package analyze

import (
	"fmt"
	"slices"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// bindSources makes the views and describes them.
func (a *analysis) bindSources() error {
	for _, src := range a.req.GetSources() {
		if err := a.bindSource(src); err != nil {
			return err
		}
	}
	return nil
}

func (a *analysis) bindSource(src *planv1.Source) error {
	if err := a.inst.CheckFiles(a.ctx, src); err != nil {
		return err
	}
	if err := a.inst.BindSources(a.ctx, []*planv1.Source{src}); err != nil {
		return err
	}
	cols, err := a.inst.Describe(a.ctx, "SELECT * FROM "+duckdb.Ident(src.GetView()))
	if err != nil {
		return err
	}
	if err := duckdb.CheckInvented(src, cols); err != nil {
		return err
	}
	files, err := a.fileStats(src)
	if err != nil {
		return err
	}
	if hidesRowNumbers(src, cols) {
		for _, f := range files {
			f.RowGroupRows = nil
		}
	}
	a.out.Stats = append(a.out.Stats, &executorv1.SourceStats{View: src.GetView(), Files: files, Columns: cols})
	return nil
}

// hidesRowNumbers reports whether files have a column by the name by which DuckDB numbers rows: ranges of their rows cannot be read.
func hidesRowNumbers(src *planv1.Source, cols []*planv1.Column) bool {
	const name = "file_row_number"
	_, asked := src.GetFile().GetOptions()[name]
	return src.GetFile() != nil && !asked && slices.ContainsFunc(cols, func(c *planv1.Column) bool { return strings.EqualFold(c.GetName(), name) })
}

// fileStats lists every file once: rows and row groups of Parquet files, the pinned size of others.
func (a *analysis) fileStats(src *planv1.Source) ([]*executorv1.FileStats, error) {
	paths := duckdb.FilesOf([]*planv1.Source{src})
	if isParquet(src) {
		stats, err := a.inst.ParquetStats(a.ctx, paths)
		if err != nil {
			return nil, err
		}
		if len(stats) != len(paths) {
			return nil, fmt.Errorf("source %s: DuckDB described %d of %d files", src.GetAlias(), len(stats), len(paths))
		}
		out := make([]*executorv1.FileStats, len(stats))
		for i, s := range stats {
			out[i] = &executorv1.FileStats{Path: s.Path, RowGroupRows: s.RowGroups, Rows: s.Rows, Bytes: s.Bytes}
		}
		return out, nil
	}
	sizes := map[string]int64{}
	for _, f := range src.GetFile().GetFiles() {
		sizes[f.GetPath()] = f.GetSizeBytes()
	}
	var out []*executorv1.FileStats
	for _, p := range paths {
		out = append(out, &executorv1.FileStats{Path: p, Rows: -1, Bytes: sizes[p]})
	}
	return out, nil
}

func isParquet(src *planv1.Source) bool {
	if src.GetTable() != nil {
		return true
	}
	parquet, _ := duckdb.IsParquetReader(src.GetFile().GetFunction())
	return parquet
}
