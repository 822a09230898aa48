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
func copyOnce(ctx context.Context, data, out string, threads int, memory string) error {
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
	file := filepath.Join(out, "copy.parquet")
	start := time.Now()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("COPY (SELECT * FROM '%s') TO '%s' (FORMAT PARQUET, COMPRESSION zstd, ROW_GROUP_SIZE 122880)", data, file)); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	fmt.Printf("%.6f\n", time.Since(start).Seconds())
	return nil
}
