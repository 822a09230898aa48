package duckdb

import "context"

// FileStats describes one Parquet file.
type FileStats struct {
	Path      string
	Rows      int64
	Bytes     int64
	RowGroups []int64 // rows of each
}

// ParquetStats reads the sizes of Parquet files from their footers, in the order of paths.
func (i *Instance) ParquetStats(ctx context.Context, paths []string) ([]FileStats, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	list, err := patternList(paths)
	if err != nil {
		return nil, err
	}
	byPath := map[string]*FileStats{}
	var several []string
	rows, err := i.conn.QueryContext(ctx, "SELECT file_name, num_rows, num_row_groups, CAST(file_size_bytes AS BIGINT) FROM parquet_file_metadata("+list+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f FileStats
		var groups int64
		if err := rows.Scan(&f.Path, &f.Rows, &groups, &f.Bytes); err != nil {
			return nil, err
		}
		switch {
		case groups == 1:
			f.RowGroups = []int64{f.Rows}
		case groups > 1:
			several = append(several, f.Path)
		}
		byPath[f.Path] = &f
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if err := i.rowGroups(ctx, several, byPath); err != nil {
		return nil, err
	}
	out := make([]FileStats, 0, len(paths))
	for _, p := range paths {
		if f := byPath[p]; f != nil {
			out = append(out, *f)
		}
	}
	return out, nil
}

// maxDetailed bounds the files whose row groups are listed one by one. parquet_metadata answers a row per column and row group; beyond this many
// files there is enough to share out without cutting any.
const maxDetailed = 1024

func (i *Instance) rowGroups(ctx context.Context, paths []string, byPath map[string]*FileStats) error {
	if len(paths) == 0 || len(paths) > maxDetailed {
		return nil
	}
	list, err := patternList(paths)
	if err != nil {
		return err
	}
	rows, err := i.conn.QueryContext(ctx, "SELECT file_name, row_group_num_rows FROM parquet_metadata("+list+") WHERE column_id = 0 ORDER BY file_name, row_group_id")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		var n int64
		if err := rows.Scan(&path, &n); err != nil {
			return err
		}
		if f := byPath[path]; f != nil {
			f.RowGroups = append(f.RowGroups, n)
		}
	}
	return rows.Err()
}

func patternList(paths []string) (string, error) {
	patterns := make([]string, len(paths))
	for n, p := range paths {
		var err error
		if patterns[n], err = globEscape(p); err != nil {
			return "", err
		}
	}
	return ListLiteral(patterns), nil
}
