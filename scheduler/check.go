package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/checkup"
	"github.com/signet-io/signet/scheduler/config"
)

// Check tries the catalogs of a configuration and the places that statements read, or one catalog, without a scheduler: for so long each. It reports every step; what failed is told by the steps alone.
func Check(ctx context.Context, cfg *config.Config, only string, patience time.Duration, report func(checkup.Step)) error {
	var names []string
	for name := range cfg.Catalogs {
		if only == "" || name == only {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 && (only != "" || len(cfg.Sources.Remote) == 0) {
		return fmt.Errorf("no catalog %s is configured", only)
	}
	s := &Server{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	for _, name := range names {
		c := cfg.Catalogs[name]
		if c.Type == config.CatalogSink {
			report(checkup.Step{Catalog: name, Name: "storage", State: checkup.Skipped, Detail: "a storage sink's tables are its plugin's business"})
			continue
		}
		t := s.checkTarget(name, c)
		within, cancel := context.WithTimeout(ctx, patience)
		checkup.Run(within, t, report)
		cancel()
	}
	for i := range cfg.Sources.Remote {
		if only != "" {
			break
		}
		within, cancel := context.WithTimeout(ctx, patience)
		checkup.RunSource(within, sourceTarget(i, cfg.Sources.Remote[i]), report)
		cancel()
	}
	return ctx.Err()
}

// sourceTarget is a place that statements read, as the scheduler reads it.
func sourceTarget(i int, r config.RemoteSource) checkup.Source {
	t := checkup.Source{
		Setting: fmt.Sprintf("sources.remote[%d]", i), Prefix: r.Prefix,
		Endpoint: r.Properties[objects.Endpoint], Region: cmp.Or(r.Properties[objects.Region], r.Properties[objects.ClientRegion]),
	}
	if !r.IsWeb() {
		t.Open = func(bucket string) (objects.Client, error) {
			opened, err := remoteSource(r)
			if err != nil {
				return nil, err
			}
			return opened.Open(bucket)
		}
	}
	return t
}

func (s *Server) checkTarget(name string, c config.Catalog) checkup.Target {
	t := checkup.Target{
		Name: name, Warehouse: strings.TrimSuffix(c.Warehouse, "/"), Restricted: c.Restricted(), Vended: c.Credentials.Mode == config.CredentialsVended,
		Endpoint: c.Properties[objects.Endpoint], Region: cmp.Or(c.Properties[objects.Region], c.Properties[objects.ClientRegion]),
	}
	var role *sessions
	t.Open = func(ctx context.Context) (catalog.Catalog, error) {
		cat, sessions, err := s.openCatalog(ctx, name, c)
		role = sessions
		return cat, err
	}
	if c.Type == config.CatalogDelta {
		t.Warehouse = strings.TrimSuffix(c.Root, "/")
		t.Storage = func(ctx context.Context, location string) (storage.Store, error) {
			stores, sessions, err := openStores(c)
			if err != nil {
				return nil, err
			}
			role = sessions
			return stores.Open(ctx, location)
		}
	}
	if c.Credentials.RoleARN != "" && c.Credentials.Mode != config.CredentialsPresigned {
		t.Session = func(ctx context.Context, prefix string) (map[string]string, error) {
			if role == nil {
				return nil, nil
			}
			access, _, err := role.open(ctx, "check", "check", prefix)
			return access.GetProperties(), err
		}
	}
	names := s.cfg.Principals(name)
	if !s.cfg.Auth.Asked() && !slices.Contains(names, localPrincipal) {
		names = append(names, localPrincipal)
	}
	for _, p := range names {
		known := s.cfg.Knows(p) || p == localPrincipal && !s.cfg.Auth.Asked()
		t.Principals = append(t.Principals, checkup.Principal{Name: p, Known: known, May: c.Grants(p)})
	}
	return t
}
