package write

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
)

// noValue is what the directory of rows without a value is called.
const noValue = "__HIVE_DEFAULT_PARTITION__"

// wholeNumber is how directories write integers.
var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

// partition finds the value of partition field k for every file. It must be one: proved by the footer, given by the names of directories where the column
// is not in the file, or found by reading the column where nothing else tells.
func (a *adding) partition(ctx context.Context, k int) error {
	key, pf := a.p.keys[k], a.p.spec.GetPartition()[k]
	var ask []*verdict
	asked := map[*verdict]*addedFile{}
	s := &splicer{p: a.p, inst: a.inst}
	for _, f := range a.files {
		leaf := f.ref.Layout.LeafOf(pf.GetSourceId())
		switch {
		case key.Void:
			f.partition[k] = &planv1.Value{}
		case leaf == nil:
			if err := a.absent(ctx, f, k); err != nil {
				return err
			}
		default:
			for _, v := range f.groups() {
				asked[v] = f
				ask = append(ask, v)
			}
		}
	}
	// The same proofs as for row groups that are copied, file by file because each has a layout of its own.
	for start := 0; start < len(ask); {
		f := asked[ask[start]]
		end := start
		for end < len(ask) && asked[ask[end]] == f {
			end++
		}
		if err := a.prove(ctx, s, f, k, ask[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// groups are the row groups that have rows.
func (f *addedFile) groups() []*verdict {
	var out []*verdict
	for n := range f.in.Meta().Groups {
		if rows := f.in.Meta().Groups[n].Rows; rows > 0 {
			out = append(out, &verdict{group: n, rows: rows, partition: make([]*planv1.Value, len(f.partition))})
		}
	}
	return out
}

// prove takes the value that all row groups have, or reads the column.
func (a *adding) prove(ctx context.Context, s *splicer, f *addedFile, k int, groups []*verdict) error {
	all := make([]verdict, len(groups))
	for n, g := range groups {
		all[n] = *g
	}
	if err := s.routeBy(ctx, k, f.in, f.ref.Layout, all); err != nil {
		return err
	}
	for n := range all {
		if all[n].reason != "" {
			return a.read(ctx, f, k)
		}
		if n > 0 && !proto.Equal(all[n].partition[k], all[0].partition[k]) {
			return a.several(f, k)
		}
	}
	f.partition[k] = all[0].partition[k]
	return nil
}

func (a *adding) several(f *addedFile, k int) error {
	return refusedFile(f.file, copyHint, "column %q: its rows are in several partitions of %q, and a data file is in one", a.p.keys[k].source, a.p.spec.GetPartition()[k].GetName())
}

// read finds the partitions of a file's rows by reading the column.
func (a *adding) read(ctx context.Context, f *addedFile, k int) error {
	pf := a.p.spec.GetPartition()[k]
	leaf := f.ref.Layout.LeafOf(pf.GetSourceId())
	typ, err := duckdb.SQLType(leaf.Field.GetType())
	if err != nil {
		return err
	}
	expr := ""
	for n, name := range leaf.Names() {
		if n == 0 {
			expr = duckdb.Ident(name)
			continue
		}
		expr = "struct_extract(" + expr + ", " + duckdb.Literal(name) + ")"
	}
	derived, err := transform.New(pf.GetTransform(), pf.GetParam(), leaf.Field.GetType(), "CAST("+expr+" AS "+typ+")")
	if err != nil {
		return err
	}
	from, err := f.source()
	if err != nil {
		return err
	}
	rows, err := a.inst.Conn().QueryContext(ctx, "SELECT DISTINCT CAST("+derived.SQL+" AS VARCHAR) FROM "+from+" LIMIT 2")
	if err != nil {
		return fmt.Errorf("%s: column %q: %w", shownName(f.file), a.p.keys[k].source, err)
	}
	defer rows.Close()
	var found []sql.NullString
	for rows.Next() {
		var v sql.NullString
		if err := rows.Scan(&v); err != nil {
			return err
		}
		found = append(found, v)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: column %q: %w", shownName(f.file), a.p.keys[k].source, err)
	}
	if len(found) != 1 {
		return a.several(f, k)
	}
	if f.partition[k] = (&planv1.Value{}); found[0].Valid {
		f.partition[k], err = derived.Parse(found[0].String)
	}
	return err
}

// absent gives the partition value of a column that the file does not have: that of a directory, or NULL, as which the column reads.
func (a *adding) absent(ctx context.Context, f *addedFile, k int) error {
	key, pf := a.p.keys[k], a.p.spec.GetPartition()[k]
	f.partition[k] = &planv1.Value{}
	var field *planv1.Field
	for _, c := range f.ref.Found.Absent {
		if c.GetId() == pf.GetSourceId() {
			field = c
		}
	}
	text, given := f.values[pf.GetSourceId()]
	switch {
	case field.GetInitialDefault().GetKind() != nil && !given:
		return refusedFile(f.file, copyHint, "column %q is not in the file, and the table is partitioned by it", key.source)
	case !given || pf.GetTransform() != planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		if given {
			return refusedFile(f.file, copyHint, "column %q is not in the file but in the names of directories, and partition field %q is not its value", key.source, pf.GetName())
		}
		return nil
	case text == noValue && field.GetRequired():
		return refusedFile(f.file, "", "column %q of the table is required, and the file's directory says that its rows have none", key.source)
	case text == noValue:
		return nil
	}
	typ, err := duckdb.SQLType(field.GetType())
	if err != nil {
		return err
	}
	derived, err := transform.New(pf.GetTransform(), pf.GetParam(), field.GetType(), "v")
	if err != nil {
		return err
	}
	var got sql.NullString
	q := "SELECT CAST(" + derived.SQL + " AS VARCHAR) FROM (SELECT TRY_CAST(" + duckdb.Literal(text) + " AS " + typ + ") AS v)"
	if err := a.inst.Conn().QueryRowContext(ctx, q).Scan(&got); err != nil {
		return fmt.Errorf("%s: column %q: %w", shownName(f.file), key.source, err)
	}
	if !got.Valid || isInt(field.GetType().GetKind()) && !wholeNumber.MatchString(text) { // DuckDB rounds
		return refusedFile(f.file, "", "column %q: the directory says %q, which is no %s", key.source, text, typ)
	}
	f.partition[k], err = derived.Parse(got.String)
	return err
}
