// Package open makes the catalogs that the configuration names.
package open

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/glue"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/config"
)

// Deps are what all catalogs share.
type Deps struct {
	Stores storage.Opener // storage.Local if nil
	Logger *slog.Logger
}

// Open makes one catalog. Its secrets are read now; a server that it is behind need not be there.
func Open(ctx context.Context, name string, c config.Catalog, d Deps) (catalog.Catalog, error) {
	secrets := map[string]string{}
	for key, s := range c.Secret {
		v, err := s.Resolve()
		if err != nil {
			return nil, fmt.Errorf("secret.%s: %w", key, err)
		}
		secrets[key] = v
	}
	switch c.Type {
	case config.CatalogSQL:
		return sql.Open(ctx, sql.Options{
			Name: name, CatalogName: c.Name, URI: c.URI, Password: secrets["password"], Warehouse: c.Warehouse, Stores: d.Stores, Logger: d.Logger,
		})
	case config.CatalogREST:
		return rest.Open(ctx, rest.Options{
			Name: name, URI: c.URI, Warehouse: c.Warehouse, Properties: c.Properties, Secrets: secrets,
			CA: c.TLS.CA, Cert: c.TLS.Cert, Key: c.TLS.Key, Vending: vending(c), Stores: d.Stores, Logger: d.Logger,
		})
	case config.CatalogGlue:
		return glue.Open(ctx, glue.Options{
			Name: name, Warehouse: c.Warehouse, Properties: c.Properties, Secrets: secrets, Stores: d.Stores, Logger: d.Logger,
		})
	}
	return nil, fmt.Errorf("type %q: no catalog of this type is served", c.Type)
}

// vending is for a catalog that is asked for the credentials of its tables; nil: it is not.
func vending(c config.Catalog) *rest.Vending {
	if c.Credentials.Mode != config.CredentialsVended {
		return nil
	}
	v := &rest.Vending{Props: objects.Props{}, TrustEndpoint: c.Credentials.TrustEndpoint}
	for _, name := range []string{objects.Endpoint, objects.Region, objects.ClientRegion, objects.PathStyle, objects.VirtualHosts} {
		if value, ok := c.Properties[name]; ok {
			v.Props[name] = value
		}
	}
	return v
}
