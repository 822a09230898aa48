package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/catalog"
)

// encodedPrefix marks namespaces whose parts hold dots, as iceberg-go stores them; all others are joined by dots, as everybody does.
const encodedPrefix = "__iceberg_namespace_v1__:"

func namespaceKey(ns []string) string {
	joined := strings.Join(ns, ".")
	dotted := slices.ContainsFunc(ns, func(p string) bool { return strings.Contains(p, ".") })
	if !dotted && !strings.Contains(joined, encodedPrefix) {
		return joined
	}
	b, err := json.Marshal(ns)
	if err != nil {
		return joined // cannot happen: strings only
	}
	return encodedPrefix + string(b)
}

func parseNamespace(key string) []string {
	if text, ok := strings.CutPrefix(key, encodedPrefix); ok {
		var ns []string
		if json.Unmarshal([]byte(text), &ns) == nil && len(ns) > 0 && namespaceKey(ns) == key {
			return ns
		}
	}
	return strings.Split(key, ".")
}

func namespaceLabel(ns []string) string { return catalog.Ident(ns).String() }

// CreateNamespace implements catalog.Catalog.
func (c *Catalog) CreateNamespace(ctx context.Context, ns []string, ifNotExists bool) error {
	if err := catalog.ValidateNamespace(ns); err != nil {
		return err
	}
	key := namespaceKey(ns)
	if len(key) > maxName {
		return fmt.Errorf("namespace %s: %d bytes as stored, at most %d: %w", namespaceLabel(ns), len(key), maxName, catalog.ErrPermanent)
	}
	exists, err := c.namespaceExists(ctx, key)
	if err != nil {
		return err
	}
	if !exists {
		// The property is the one with which all implementations mark a namespace that has no others.
		n, err := c.db.exec(ctx, `INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
			VALUES ($1, $2, 'exists', 'true') ON CONFLICT DO NOTHING`, c.catalogName, key)
		if err != nil {
			return fmt.Errorf("create namespace %s: %w", namespaceLabel(ns), err)
		}
		exists = n == 0 // somebody else's by now
	}
	if exists && !ifNotExists {
		return fmt.Errorf("namespace %s: %w", namespaceLabel(ns), catalog.ErrExists)
	}
	return nil
}

func (c *Catalog) namespaceExists(ctx context.Context, key string) (bool, error) {
	var n int
	err := c.db.row(ctx, `SELECT
		(SELECT count(*) FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2) +
		(SELECT count(*) FROM iceberg_tables WHERE catalog_name = $3 AND table_namespace = $4)`,
		[]any{c.catalogName, key, c.catalogName, key}, &n)
	if err != nil {
		return false, fmt.Errorf("look for namespace %s: %w", key, err)
	}
	return n > 0, nil
}

// Namespaces implements catalog.Catalog.
func (c *Catalog) Namespaces(ctx context.Context) ([][]string, error) {
	keys, err := c.db.strings(ctx, `SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1
		UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $2`, c.catalogName, c.catalogName)
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	out := make([][]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, parseNamespace(k))
	}
	slices.SortFunc(out, slices.Compare)
	return out, nil
}

// Tables implements catalog.Catalog.
func (c *Catalog) Tables(ctx context.Context, ns []string) ([]catalog.Ident, error) {
	key := namespaceKey(ns)
	names, err := c.db.strings(ctx, `SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2`+c.db.isTable(),
		c.catalogName, key)
	if err != nil {
		return nil, fmt.Errorf("list tables of %s: %w", namespaceLabel(ns), err)
	}
	if len(names) == 0 {
		exists, err := c.namespaceExists(ctx, key)
		if err != nil {
			return nil, err
		}
		if !exists {
			return nil, fmt.Errorf("namespace %s: %w", namespaceLabel(ns), catalog.ErrNotFound)
		}
	}
	slices.Sort(names)
	out := make([]catalog.Ident, 0, len(names))
	for _, n := range names {
		out = append(out, append(slices.Clone(ns), n))
	}
	return out, nil
}

// isTable leaves views out, where the database can tell; rows without a type are tables of engines that know no views.
func (d *database) isTable() string {
	if d.v0 {
		return ""
	}
	return ` AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)`
}
