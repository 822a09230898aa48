package scheduler

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-io/signet/scheduler/sql"
)

// Other engines nest schemas: a catalog's namespace may have several parts. In SQL a nested schema is one name with dots, lake."n1.n2".t, because queries
// have room for three parts.

// schemaText is a namespace as SQL names it.
func schemaText(ns []string) string { return strings.Join(ns, ".") }

// namespace finds what a schema's name stands for: the namespace of that very name, else the nested one.
func (e *catalogEntry) namespace(ctx context.Context, ns []string) ([]string, error) {
	if e.catalog == nil || !strings.Contains(schemaText(ns), ".") {
		return ns, nil
	}
	all, err := e.catalog.Namespaces(ctx)
	if err != nil {
		return nil, catalogError(err, "catalog "+e.name)
	}
	if slices.ContainsFunc(all, func(have []string) bool { return slices.Equal(have, ns) }) {
		return ns, nil
	}
	return strings.Split(schemaText(ns), "."), nil
}

// plainSchema refuses to create a schema with a dot in its name: every other engine would take it for a nested one, or not find it.
func plainSchema(e *catalogEntry, ns []string) error {
	for _, part := range ns {
		if strings.Contains(part, ".") {
			return fail(codeUser, "take a name without a dot; nested schemas that another engine makes can be used", "schema %s: a dot in a name makes a nested schema, which Signet does not create",
				sql.JoinName([]string{e.name, part}))
		}
	}
	return nil
}
