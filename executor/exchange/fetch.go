package exchange

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
)

// fetches is how many parts of a task are on their way at a time.
const fetches = 8

// HasParts tells whether there is anything to fetch.
func HasParts(sources []*planv1.Source) bool {
	for _, s := range sources {
		if len(s.GetExchange().GetParts()) > 0 {
			return true
		}
	}
	return false
}

// FetchParts brings the parts that sources read into dir, which it makes: each once, however many sources read it. free is the space on the disk
// that must remain. The error is an exchangeclient.LostError where a part cannot be had.
func FetchParts(ctx context.Context, d *exchangeclient.Dialer, sources []*planv1.Source, dir string, free int64) error {
	parts, err := partsOf(sources)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if free >= 0 {
		for _, p := range parts {
			free += p.GetBytes()
		}
		if err := upload.CheckSpace(dir, free); err != nil {
			return err
		}
	}
	if err := fault.Hit("executor.fetch.before"); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(fetches)
	for _, p := range parts {
		if gctx.Err() != nil {
			break
		}
		if mutant.On("exchange/own-disk") && copyOwn(p, dir) {
			continue
		}
		g.Go(func() error { return fetchTo(gctx, d, p, filepath.Join(dir, duckdb.PartName(p))) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fault.Hit("executor.fetch.after")
}

// partsOf checks the parts of each source, and lists each of them once. The same part may be an input of two sources, but not as two things.
func partsOf(sources []*planv1.Source) ([]*planv1.ExchangePart, error) {
	var out []*planv1.ExchangePart
	seen := map[string]*planv1.ExchangePart{}
	for _, s := range sources {
		parts, err := exchangeclient.Order(s.GetExchange().GetParts())
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", s.GetView(), err)
		}
		for _, p := range parts {
			if err := upload.CheckName(p.GetAttemptId()); err != nil {
				return nil, fmt.Errorf("source %s: attempt id: %v", s.GetView(), err) //nolint:errorlint // the scheduler's defect, not the user's
			}
			name := duckdb.PartName(p)
			if first, ok := seen[name]; !ok {
				seen[name] = p
				out = append(out, p)
			} else if string(first.GetSha256()) != string(p.GetSha256()) {
				return nil, fmt.Errorf("source %s: partition %d of attempt %s comes with two checksums", s.GetView(), p.GetPartition(), p.GetAttemptId())
			}
		}
	}
	return out, nil
}

// copyOwn is what fetching must not be: it looks for a part on this very disk (S11).
func copyOwn(p *planv1.ExchangePart, dir string) bool {
	for above := filepath.Dir(dir); above != "/"; above = filepath.Dir(above) {
		b, err := os.ReadFile(filepath.Join(above, "outputs", p.GetAttemptId(), fmt.Sprintf("%d.parquet", p.GetPartition())))
		if err == nil {
			return os.WriteFile(filepath.Join(dir, duckdb.PartName(p)), b, 0o600) == nil
		}
	}
	return false
}

func fetchTo(ctx context.Context, d *exchangeclient.Dialer, part *planv1.ExchangePart, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(exchangeclient.Fetch(ctx, d, part, f), f.Close())
}
