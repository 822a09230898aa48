package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/azure"
	"github.com/signet-io/signet/internal/objects/gcs"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/config"
)

// cloudRoots are the stores besides S3 that a catalog is configured for. They give no sessions: executors get single requests signed.
func cloudRoots(c config.Catalog) ([]storage.Root, error) {
	var out []storage.Root
	if uses(c, "gcs.", "gs://") {
		props, err := cloudProps(c, "gcs.")
		if err != nil {
			return nil, err
		}
		who, err := gcs.NewIdentity(props)
		if err != nil {
			return nil, err
		}
		if _, err := who.Client("a-bucket"); err != nil { // told now, not by the first statement
			return nil, err
		}
		out = append(out, storage.Root{Scheme: uri.GCS, Client: who.Client})
	}
	if uses(c, "adls.", "abfs://", "abfss://", "wasb://", "wasbs://") {
		props, err := cloudProps(c, "adls.")
		if err != nil {
			return nil, err
		}
		who, err := azure.NewIdentity(props)
		if err != nil {
			return nil, err
		}
		if err := azurePlaces(c, who); err != nil { // told now, not by the first statement
			return nil, err
		}
		out = append(out, storage.Root{Scheme: uri.Azure, Client: who.Client})
	}
	return out, nil
}

// azurePlaces makes a client for each place that is configured, so that an account without credentials is noticed.
func azurePlaces(c config.Catalog, who *azure.Identity) error {
	for _, place := range append(append(slices.Clone(c.DataPaths), c.AddFilesPaths...), c.Warehouse, c.Root) {
		if at, err := uri.Parse(place); err == nil && at.Scheme == uri.Azure {
			if _, err := who.Client(at.Authority); err != nil {
				return fmt.Errorf("%s: %w", place, err)
			}
		}
	}
	return nil
}

// cloudProps are the properties and secrets that begin so.
func cloudProps(c config.Catalog, prefix string) (objects.Props, error) {
	props := objects.Props{}
	for name, v := range c.Properties {
		if strings.HasPrefix(name, prefix) {
			props[name] = v
		}
	}
	for name, secret := range c.Secret {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		v, err := secret.Resolve()
		if err != nil {
			return nil, fmt.Errorf("secret.%s: %w", name, err)
		}
		props[name] = v
	}
	return props, nil
}
