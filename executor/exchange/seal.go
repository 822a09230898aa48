package exchange

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// hashers is how many files are read at a time for their checksums.
const hashers = 2

// partitionsIn finds what a partitioned COPY has left: directories p=0, p=1, ... with a file each, or several where DuckDB closed one early.
func partitionsIn(dir string) (map[int32][]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no rows may leave no directory
		return nil, err
	}
	out := map[int32][]string{}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "p=")
		n, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("DuckDB wrote %s, which is no partition", e.Name())
		}
		if out[int32(n)], err = filesIn(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// seal brings each partition into one file, fileName below dir, and describes it.
func seal(ctx context.Context, inst *duckdb.Instance, dir string, files map[int32][]string) (*planv1.ExchangeOutput, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	partitions := slices.Sorted(maps.Keys(files))
	paths := make([]string, len(partitions))
	for n, p := range partitions {
		paths[n] = filepath.Join(dir, fileName(p))
		if err := unite(ctx, inst, files[p], paths[n]); err != nil {
			return nil, err
		}
	}
	rows, err := inst.ParquetRows(ctx, paths)
	if err != nil {
		return nil, err
	}
	out := &planv1.ExchangeOutput{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(hashers)
	for n, p := range partitions {
		if rows[paths[n]] == 0 {
			if err := os.Remove(paths[n]); err != nil {
				return nil, errors.Join(err, g.Wait())
			}
			continue
		}
		part := &planv1.ExchangePartition{Partition: p, Rows: rows[paths[n]]}
		out.Partitions = append(out.Partitions, part)
		g.Go(func() (err error) {
			part.Bytes, part.Sha256, err = digest(gctx, paths[n])
			return err
		})
	}
	return out, g.Wait()
}

// unite makes one file of a partition's files.
func unite(ctx context.Context, inst *duckdb.Instance, files []string, target string) error {
	if len(files) == 1 {
		if files[0] == target {
			return nil
		}
		return errors.Join(os.Rename(files[0], target), os.Remove(filepath.Dir(files[0])))
	}
	list, err := duckdb.FileList(files)
	if err != nil {
		return err
	}
	_, err = inst.Conn().ExecContext(ctx, "COPY (SELECT * FROM read_parquet("+list+", hive_partitioning=false)) TO "+duckdb.Literal(target)+" ("+copyOptions(inst.Access().KeepOrder, groupRows)+")")
	return errors.Join(err, os.RemoveAll(filepath.Dir(files[0])))
}

// digest reads a file for its size and checksum.
func digest(ctx context.Context, path string) (int64, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, &interruptible{ctx, f}, make([]byte, 256<<10))
	return n, sum.Sum(nil), err
}

// interruptible stops reading when its context ends.
type interruptible struct {
	ctx context.Context //nolint:containedctx // the reader's life
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
