package plan

import (
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// TypeChanges says which columns of a CREATE TABLE AS get another type than the query has, because no table stores it. fields are the
// columns that Definition made of query.
func TypeChanges(query []*planv1.Column, fields []*planv1.Field) []string {
	var out []string
	for i, q := range query {
		engine, err := engineTypeOf(q)
		if err != nil || i >= len(fields) {
			continue // Definition has refused it
		}
		changed(engine, "", func(path, from string, to *planv1.Type) {
			if path != "" {
				from += " (at " + path + ")"
			}
			out = append(out, fmt.Sprintf("column %s: no table stores %s; it is stored as %s", sql.DisplayIdent(fields[i].GetName()), from, TypeText(to)))
		})
	}
	return out
}

// changed calls report for every part of a type that becomes another one.
func changed(t EngineType, path string, report func(path, from string, to *planv1.Type)) {
	to, err := StorableType(t)
	if err != nil {
		return
	}
	switch name, err := CastType(to); {
	case t.Name == "ARRAY":
		report(path, t.String(), to)
		return
	case len(t.Fields) > 0:
		for _, f := range t.Fields {
			changed(f.Type, joinPath(path, f.Name), report)
		}
	case err == nil && t.Name != "DECIMAL" && name != t.Name:
		report(path, t.Name, to)
	}
}
