package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/scheduler/checkup"
	"github.com/signet-io/signet/scheduler/config"
)

// Check tries the catalogs of a configuration, or one of them, without a scheduler: for so long each. It reports every step; what failed is told by the steps alone.
func Check(ctx context.Context, cfg *config.Config, only string, patience time.Duration, report func(checkup.Step)) error {
	var names []string
	for name := range cfg.Catalogs {
		if only == "" || name == only {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return fmt.Errorf("no catalog %s is configured", only)
	}
	s := &Server{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	for _, name := range names {
		c := cfg.Catalogs[name]
		if c.Type == config.CatalogSink {
			report(checkup.Step{Catalog: name, Name: "storage", State: checkup.Skipped, Detail: "a storage sink's tables are its plugin's business"})
			continue
		}
		t := checkup.Target{Name: name, Warehouse: strings.TrimSuffix(c.Warehouse, "/"), Open: func(ctx context.Context) (catalog.Catalog, error) {
			cat, _, err := s.openCatalog(ctx, name, c)
			return cat, err
		}}
		if c.Credentials.Mode == config.CredentialsVended { // no table, no credentials
			t.Warehouse = ""
		}
		within, cancel := context.WithTimeout(ctx, patience)
		checkup.Run(within, t, report)
		cancel()
	}
	return ctx.Err()
}
