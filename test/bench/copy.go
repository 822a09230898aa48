//go:build cgo

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the baseline is the same DuckDB
)

// copyOnce is the baseline: one COPY with the settings of a write task, and an fsync of what it wrote.
// by is an expression whose values get files of their own, and sorted says that the rows are sorted by it first.
func copyOnce(ctx context.Context, data, out, by string, sorted bool, threads int, memory string) error {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if err := os.MkdirAll(out, 0o700); err != nil {
		return err
	}
	for _, q := range []string{
		fmt.Sprintf("SET threads=%d", threads), fmt.Sprintf("SET memory_limit='%s'", memory), "SET preserve_insertion_order=false",
		fmt.Sprintf("SET temp_directory='%s'", out),
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	query, target, options := fmt.Sprintf("SELECT * FROM '%s'", data), filepath.Join(out, "copy.parquet"), ""
	if by != "" {
		query, target = fmt.Sprintf("SELECT *, %s AS __p FROM '%s'", by, data), filepath.Join(out, "parts")
		options = ", PARTITION_BY (__p), HIVE_FILE_PATTERN false, FILENAME_PATTERN 'f{i}'"
		if sorted {
			query += " ORDER BY __p"
		}
	}
	start := time.Now()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("COPY (%s) TO '%s' (FORMAT PARQUET, COMPRESSION zstd, ROW_GROUP_SIZE 122880%s)", query, target, options)); err != nil {
		return err
	}
	err = filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
	if err != nil {
		return err
	}
	fmt.Printf("%.6f\n", time.Since(start).Seconds())
	return nil
}
