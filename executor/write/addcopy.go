package write

import (
	"context"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
)

// CopyReport says which columns of a table the files have that are to be copied into it.
type CopyReport struct {
	Columns     []string // in files, in the table's order
	PathColumns []string // in the names of directories only
	Rows        int64
}

// CheckCopies checks files whose rows are to be copied into a table: each must be Parquet, have no column that the table lacks and every one that it
// requires, and no field id that says another column than its name does. Types and values are looked at when the rows are written.
func CheckCopies(ctx context.Context, spec *planv1.WriteSpec, files []*planv1.PinnedFile) (*CopyReport, error) {
	out := &CopyReport{}
	fields := spec.GetSchema().GetFields()
	inFile, inPath := map[int32]string{}, map[int32]string{} // where a column was found first
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		in, err := openAdded(f)
		if err != nil {
			return nil, err
		}
		if in.Meta().Encrypted {
			return nil, refusedFile(f, "", "it is encrypted")
		}
		found, reason := splice.Find(in.Meta(), fields, splice.NamesOf(spec.GetNames()), !spec.GetFiles().GetNoFieldIds())
		if reason != "" {
			return nil, refusedFile(f, chooseHint, "%s", reason)
		}
		for n, field := range found.Have {
			if name := found.Name(n); name != field.GetName() {
				return nil, refusedFile(f, chooseHint, "column %q of the table is called %q in the file", field.GetName(), name)
			}
		}
		if err := absentOf(f, &found, inFile, inPath); err != nil {
			return nil, err
		}
		out.Rows += in.Meta().Rows
	}
	for _, field := range fields {
		_, path := inPath[field.GetId()]
		other, file := inFile[field.GetId()]
		switch {
		case path && file:
			return nil, &duckdb.UserError{Message: inPath[field.GetId()] + ": column \"" + field.GetName() + "\" is in the names of directories only, and " + other + " has it: add them by two statements"}
		case path:
			out.PathColumns = append(out.PathColumns, field.GetName())
		case file:
			out.Columns = append(out.Columns, field.GetName())
		}
	}
	return out, nil
}

// absentOf notes where the columns of a file are.
func absentOf(f *planv1.PinnedFile, found *splice.Found, inFile, inPath map[int32]string) error {
	note := func(m map[int32]string, id int32) {
		if _, ok := m[id]; !ok {
			m[id] = shownName(f)
		}
	}
	for _, field := range found.Have {
		note(inFile, field.GetId())
	}
	dirs := duckdb.DirectoryValues(f)
	for _, field := range found.Absent {
		if _, given := dirs[field.GetName()]; given {
			note(inPath, field.GetId())
		} else if field.GetRequired() {
			return refusedFile(f, "", "column %q of the table is required, and the file does not have it", field.GetName())
		}
	}
	return nil
}
