package glue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"

	"github.com/signet-io/signet/catalog"
)

// page is how much is asked for at once: the most that Glue gives.
const page = 100

// CreateNamespace implements catalog.Catalog.
func (c *Catalog) CreateNamespace(ctx context.Context, ns []string, ifNotExists bool) error {
	if err := usableNamespace(ns); err != nil {
		return err
	}
	err := c.api.createDatabase(ctx, &glue.CreateDatabaseInput{CatalogId: c.id, DatabaseInput: &types.DatabaseInput{Name: aws.String(ns[0])}})
	if err == nil {
		return nil
	}
	exists := is[*types.AlreadyExistsException](err)
	if !exists && ifNotExists {
		_, look := c.database(ctx, ns[0]) // it may be there, by this request or another
		exists = look == nil
	}
	switch {
	case exists && ifNotExists:
		return nil
	case exists:
		return fmt.Errorf("namespace %s: %w", catalog.Ident(ns), catalog.ErrExists)
	}
	return fmt.Errorf("create namespace %s: %w", catalog.Ident(ns), err)
}

func (c *Catalog) database(ctx context.Context, name string) (*types.Database, error) {
	out, err := c.api.getDatabase(ctx, &glue.GetDatabaseInput{CatalogId: c.id, Name: aws.String(name)})
	if err != nil {
		return nil, err
	}
	if out.Database == nil || aws.ToString(out.Database.Name) != name {
		return nil, errNoAnswer
	}
	return out.Database, nil
}

// Namespaces implements catalog.Catalog.
func (c *Catalog) Namespaces(ctx context.Context) ([][]string, error) {
	var out [][]string
	in := &glue.GetDatabasesInput{CatalogId: c.id, MaxResults: aws.Int32(page)}
	for {
		got, err := c.api.getDatabases(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		if got.DatabaseList == nil {
			return nil, fmt.Errorf("list namespaces: %w", errNoAnswer)
		}
		for _, d := range got.DatabaseList {
			out = append(out, []string{aws.ToString(d.Name)})
		}
		if aws.ToString(got.NextToken) == "" {
			break
		}
		in.NextToken = got.NextToken
	}
	slices.SortFunc(out, slices.Compare)
	return out, nil
}

// Tables implements catalog.Catalog. Only tables of Iceberg are told.
func (c *Catalog) Tables(ctx context.Context, ns []string) ([]catalog.Ident, error) {
	if err := usableNamespace(ns); err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrNotFound, err)
	}
	var out []catalog.Ident
	err := c.eachTable(ctx, ns[0], func(t *types.Table) {
		if isIceberg(t) {
			out = append(out, catalog.Ident{ns[0], aws.ToString(t.Name)})
		}
	})
	if err != nil {
		if errors.Is(err, catalog.ErrNotFound) {
			return nil, fmt.Errorf("namespace %s: %w", catalog.Ident(ns), err)
		}
		return nil, fmt.Errorf("list tables of %s: %w", catalog.Ident(ns), err)
	}
	slices.SortFunc(out, func(a, b catalog.Ident) int { return strings.Compare(a.Table(), b.Table()) })
	return out, nil
}

// eachTable goes through the tables of a database, of any kind.
func (c *Catalog) eachTable(ctx context.Context, database string, each func(*types.Table)) error {
	in := &glue.GetTablesInput{CatalogId: c.id, DatabaseName: aws.String(database), MaxResults: aws.Int32(page)}
	for {
		got, err := c.api.getTables(ctx, in)
		if err != nil {
			return err
		}
		if got.TableList == nil {
			return errNoAnswer
		}
		for i := range got.TableList {
			each(&got.TableList[i])
		}
		if aws.ToString(got.NextToken) == "" {
			return nil
		}
		in.NextToken = got.NextToken
	}
}
