package transaction

import (
	"maps"
	"strconv"

	"github.com/signet-io/signet/sinks/delta/log"
)

// Operation says in commitInfo what a commit did, by the names and with the parameters that Spark gives, so that a table's history reads the same whoever wrote it.
type Operation struct {
	Name       string
	Parameters map[string]string // lists and maps as JSON
}

// The names of Spark's operations.
const (
	nameWrite    = "WRITE"
	nameDelete   = "DELETE"
	nameUpdate   = "UPDATE"
	nameMerge    = "MERGE"
	nameTruncate = "TRUNCATE"
	nameOptimize = "OPTIMIZE"
)

// Append is an INSERT into a table with those partition columns.
func Append(partitionBy []string) Operation {
	return Operation{nameWrite, map[string]string{"mode": "Append", "partitionBy": list(partitionBy)}}
}

// Overwritten is an INSERT OVERWRITE: of all rows; of those of a predicate, as SQL; or of the partitions written to.
func Overwritten(partitionBy []string, predicate string, dynamic bool) Operation {
	p := map[string]string{"mode": "Overwrite", "partitionBy": list(partitionBy)}
	if predicate != "" {
		p["predicate"] = predicate
	}
	if dynamic {
		p["isDynamicPartitionOverwrite"] = "true"
	}
	return Operation{nameWrite, p}
}

// Created is CREATE TABLE, or CREATE OR REPLACE TABLE, without or with a query.
func Created(m *log.Metadata, replace, query bool) Operation {
	name := "CREATE TABLE"
	if replace {
		name = "CREATE OR REPLACE TABLE"
	}
	if query {
		name += " AS SELECT"
	}
	p := map[string]string{"partitionBy": list(m.PartitionColumns), "clusterBy": "[]", "isManaged": "false", "properties": properties(m.Configuration)}
	if m.Description != nil {
		p["description"] = *m.Description
	}
	return Operation{name, p}
}

// Deleted is a DELETE with its predicates, as SQL.
func Deleted(predicates ...string) Operation {
	return Operation{nameDelete, map[string]string{"predicate": list(predicates)}}
}

// Updated is an UPDATE with its predicates, as SQL.
func Updated(predicates ...string) Operation {
	return Operation{nameUpdate, map[string]string{"predicate": list(predicates)}}
}

// Merged is a MERGE with its condition, as SQL.
func Merged(condition string) Operation {
	p := map[string]string{"predicate": list([]string{condition})}
	for _, clauses := range []string{"matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates"} {
		p[clauses] = "[]"
	}
	return Operation{nameMerge, p}
}

// Truncated is a TRUNCATE.
func Truncated() Operation { return Operation{nameTruncate, map[string]string{}} }

// Optimized is a rewrite of files that leaves their rows.
func Optimized(predicates ...string) Operation {
	return Operation{nameOptimize, map[string]string{"predicate": list(predicates), "zOrderBy": "[]", "auto": "false"}}
}

// SetProperties is ALTER TABLE SET TBLPROPERTIES.
func SetProperties(set map[string]string) Operation {
	return Operation{"SET TBLPROPERTIES", map[string]string{"properties": properties(set)}}
}

// UnsetProperties is ALTER TABLE UNSET TBLPROPERTIES.
func UnsetProperties(keys []string, ifExists bool) Operation {
	return Operation{"UNSET TBLPROPERTIES", map[string]string{"properties": list(keys), "ifExists": strconv.FormatBool(ifExists)}}
}

func list(of []string) string {
	if of == nil {
		of = []string{}
	}
	return quoted(of)
}

func properties(of map[string]string) string {
	if of == nil {
		of = map[string]string{}
	}
	return quoted(of)
}

// totals are what a transaction adds and removes.
type totals struct {
	files, bytes, rows int64
	counted            bool // every file says how many rows it has
}

func sum(files []*log.Add) totals {
	t := totals{counted: true}
	for _, f := range files {
		t.files++
		t.bytes += f.Size
		rows, ok := records(f)
		t.rows += rows
		t.counted = t.counted && ok
	}
	return t
}

// metrics counts what Spark counts for an operation. All values are strings, as every reader of histories takes them.
func (t *Transaction) metrics() map[string]string {
	in, out := sum(t.Adds), sum(t.Removes)
	m := maps.Clone(t.Metrics)
	if m == nil {
		m = map[string]string{}
	}
	set := func(key string, n int64) { m[key] = strconv.FormatInt(n, 10) }
	switch t.Operation.Name {
	case nameDelete, nameUpdate, nameOptimize, nameTruncate:
		set("numAddedFiles", in.files)
		set("numAddedBytes", in.bytes)
		set("numRemovedFiles", out.files)
		set("numRemovedBytes", out.bytes)
		if t.Operation.Name == nameDelete && in.files == 0 && out.counted {
			set("numDeletedRows", out.rows)
			set("numCopiedRows", 0)
		}
	case nameMerge:
		set("numTargetFilesAdded", in.files)
		set("numTargetBytesAdded", in.bytes)
		set("numTargetFilesRemoved", out.files)
		set("numTargetBytesRemoved", out.bytes)
		if in.counted {
			set("numOutputRows", in.rows)
		}
	default:
		if in.files+out.files == 0 && t.Operation.Name != nameWrite {
			break
		}
		set("numFiles", in.files)
		set("numOutputBytes", in.bytes)
		if in.counted {
			set("numOutputRows", in.rows)
		}
		if out.files > 0 || t.Operation.Parameters["mode"] == "Overwrite" {
			set("numRemovedFiles", out.files)
			set("numRemovedBytes", out.bytes)
		}
	}
	return m
}
