package duckdb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
)

// CarrierName is the name of a column in the files of an exchange: the n-th of the query. The names that queries give may occur twice.
func CarrierName(n int) string { return fmt.Sprintf("c%d", n) }

// PartName is the name of a fetched part below Access.PartsDir.
func PartName(p *planv1.ExchangePart) string {
	return fmt.Sprintf("%s-%d.parquet", p.GetAttemptId(), p.GetPartition())
}

// PartFiles lists the parts that exchange sources read, each once, as they lie in dir, for Access.ReadFiles.
func PartFiles(dir string, sources []*planv1.Source) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range sources {
		for _, p := range s.GetExchange().GetParts() {
			if name := PartName(p); !seen[name] {
				seen[name] = true
				out = append(out, filepath.Join(dir, name))
			}
		}
	}
	return out
}

// exchangeQuery writes the SELECT of an exchange source's view: exactly its columns, from its parts in their order. They have been fetched.
func (i *Instance) exchangeQuery(ctx context.Context, ex *planv1.ExchangeSource) (string, error) {
	cols := ex.GetColumns()
	if err := distinctColumnNames(ex); err != nil {
		return "", err
	}
	if len(ex.GetParts()) == 0 {
		return emptyQuery(cols)
	}
	if i.access.PartsDir == "" {
		return "", errors.New("its parts were not fetched")
	}
	parts, err := exchangeclient.Order(ex.GetParts())
	if err != nil {
		return "", err
	}
	paths, list := make([]string, len(parts)), make([]string, len(cols))
	for n, p := range parts {
		paths[n] = filepath.Join(i.access.PartsDir, PartName(p))
	}
	if err := i.checkCarriers(ctx, paths[0], cols); err != nil {
		return "", err
	}
	for n, c := range cols {
		value, err := FromCarrier(CarrierName(n), c.GetEngineType())
		if err != nil {
			return "", err
		}
		list[n] = value + " AS " + Ident(c.GetName())
	}
	call, err := partsReader.call(paths)
	return "SELECT " + strings.Join(list, ", ") + " FROM " + call, err
}

var partsReader = &reader{function: "read_parquet", format: formatParquet, options: map[string]string{"hive_partitioning": "false", "union_by_name": "false"}}

func distinctColumnNames(ex *planv1.ExchangeSource) error {
	seen := map[string]bool{}
	for _, c := range ex.GetColumns() {
		lower := strings.ToLower(c.GetName())
		if seen[lower] {
			return fmt.Errorf("two of its columns are named %q", c.GetName())
		}
		seen[lower] = true
	}
	return nil
}

// checkCarriers compares a part's columns with those that are expected of it: a cast would hide that they differ.
func (i *Instance) checkCarriers(ctx context.Context, path string, cols []*planv1.Column) error {
	call, err := partsReader.call([]string{path})
	if err != nil {
		return err
	}
	have, err := i.Describe(ctx, "SELECT * FROM "+call)
	if err != nil {
		return err
	}
	if len(have) != len(cols) {
		return fmt.Errorf("its parts have %d columns; %d are expected", len(have), len(cols))
	}
	for n, c := range cols {
		want, err := parseEngineType(c.GetEngineType())
		if err != nil {
			return err
		}
		stored, ok := want.stored()
		if !ok {
			return fmt.Errorf("column %q: type %s cannot be carried in an exchange", c.GetName(), c.GetEngineType())
		}
		if h := have[n]; h.GetName() != CarrierName(n) || h.GetEngineType() != stored {
			return fmt.Errorf("column %q should be %s, which travels as %s, and its parts have %s there", c.GetName(), c.GetEngineType(), stored, h.GetEngineType())
		}
	}
	return nil
}

// ParquetRows is the number of rows of Parquet files, from their footers.
func (i *Instance) ParquetRows(ctx context.Context, paths []string) (map[string]int64, error) {
	out := map[string]int64{}
	if len(paths) == 0 {
		return out, nil
	}
	list, err := patternList(paths)
	if err != nil {
		return nil, err
	}
	rows, err := i.conn.QueryContext(ctx, "SELECT file_name, num_rows FROM parquet_file_metadata("+list+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		var n int64
		if err := rows.Scan(&path, &n); err != nil {
			return nil, err
		}
		out[path] = n
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(out) != len(paths) {
		return nil, fmt.Errorf("DuckDB answered the footers of %d files of %d", len(out), len(paths))
	}
	return out, nil
}

// FileList writes a list of files as an argument of DuckDB's readers.
func FileList(paths []string) (string, error) { return patternList(paths) }
