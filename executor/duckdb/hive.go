package duckdb

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// settleHive decides once whether directories such as k=v/ become columns, so that a task whose share looks different decides alike.
//
// A user's own hive_partitioning stands. Otherwise DuckDB's rule holds (all files have the same keys), with two corrections: keys count only in the
// part of the path that the user wrote, because sources come with absolute paths; and a key that is also a column in the file is refused
// (X3), because DuckDB would silently replace the column.
func (i *Instance) settleHive(ctx context.Context, r *reader, fs *planv1.FileSource) (*reader, error) {
	bound := fs.GetColumns()
	if _, given := r.options["hive_partitioning"]; given {
		if r.on("hive_partitioning") && len(bound) > 0 && r.format == formatParquet {
			r = r.with("hive_types_autocast", "false") // types of a share may differ; the bound ones are cast to
		}
		return r, nil
	}
	keys := commonHiveKeys(fs.GetFiles())
	if len(keys) > 0 && len(bound) > 0 && r.format == formatParquet {
		keys = slices.DeleteFunc(keys, func(k string) bool {
			return !slices.ContainsFunc(bound, func(c *planv1.Column) bool { return strings.EqualFold(c.GetName(), k) })
		})
	}
	if len(keys) == 0 {
		return r.with("hive_partitioning", "false"), nil
	}
	if r.format == formatParquet {
		clash, err := i.hiveClash(ctx, keys, fs.GetFiles()[0])
		if err != nil {
			return nil, err
		}
		switch {
		case clash == [2]string{}:
		case len(bound) > 0: // the analysis, which saw all files, found no common keys: the bound column is the file's
			return r.with("hive_partitioning", "false"), nil
		default:
			return nil, userErrorf("say hive_partitioning=false to read the files' column, or hive_partitioning=true to read the directories'",
				"%s: directory key %q meets column %q in the file", displayName(fs.GetFiles()[0]), clash[0], clash[1])
		}
		if len(bound) > 0 {
			r = r.with("hive_types_autocast", "false")
		}
	}
	return r.with("hive_partitioning", "true"), nil
}

// hiveClash finds a directory key that is a column of the file too.
func (i *Instance) hiveClash(ctx context.Context, keys []string, f *planv1.PinnedFile) ([2]string, error) {
	schemas, err := i.parquetSchemas(ctx, []string{f.GetPath()})
	if err != nil {
		return [2]string{}, err
	}
	for _, s := range schemas {
		for _, col := range s.root.children {
			for _, k := range keys {
				if strings.EqualFold(col.name, k) {
					return [2]string{k, col.name}, nil
				}
			}
		}
	}
	return [2]string{}, nil
}

// commonHiveKeys are the keys that every file's directories have, in order; none if the files differ.
func commonHiveKeys(files []*planv1.PinnedFile) []string {
	var first []string
	for n, f := range files {
		keys := hiveKeys(f)
		if n == 0 {
			first = keys
		} else if !slices.Equal(first, keys) {
			return nil
		}
	}
	return first
}

func hiveKeys(f *planv1.PinnedFile) []string {
	var keys []string
	for _, dir := range writtenDirs(f) {
		if k, v, ok := strings.Cut(dir, "="); ok && k != "" && !strings.Contains(v, "=") {
			keys = append(keys, k)
		}
	}
	return keys
}

// writtenDirs are the directories of the path that the user wrote: the last ones of the absolute path, as many as the name has. A name whose
// length says nothing (absolute, or with **) counts whole.
func writtenDirs(f *planv1.PinnedFile) []string {
	if _, key, ok := strings.Cut(f.GetUri(), "://"); ok { // behind the bucket or the host
		dirs := strings.Split(key, "/")
		return dirs[1:max(1, len(dirs)-1)]
	}
	segments := strings.Split(f.GetPath(), "/")
	dirs := segments[:len(segments)-1]
	name := strings.TrimPrefix(f.GetName(), "file://")
	if name == "" || filepath.IsAbs(name) || strings.Contains(name, "**") {
		return dirs
	}
	n := strings.Count(filepath.Clean(name), "/")
	return dirs[max(0, len(dirs)-n):]
}
