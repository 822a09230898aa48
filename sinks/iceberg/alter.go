package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/evolve"
)

// alterSends is how often one request is sent whose answers are lost.
const alterSends = 4

// AlterTable implements sdk.TableAlterer.
func (s *Sink) AlterTable(ctx context.Context, req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error) {
	return s.alterTable(ctx, sdk.HostFrom(ctx), req)
}

// alterTable plans the changes on the table as it is, and again after each conflict.
func (s *Sink) alterTable(ctx context.Context, h Host, req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error) {
	attempts := int(req.GetMaxAttempts())
	if attempts < 1 {
		attempts = defaultAttempts
	}
	s.tables.drop(tableName(req.GetTable()))
	maybe := req.GetAgain() // an earlier request may have landed
	for n := 1; ; n++ {
		resp, err := s.alterOnce(ctx, h, req, maybe)
		maybe = maybe || errors.Is(err, errLost)
		switch {
		case err == nil || !again(err):
			return resp, err
		case n >= attempts:
			return nil, fmt.Errorf("gave up after %d attempts: %w", n, err)
		}
		if err := s.pause(ctx, n); err != nil {
			return nil, err
		}
	}
}

// evolving is the table as it is now, with the location of its metadata.
func (s *Sink) evolving(ctx context.Context, h Host, ref *sinkv1.TableRef) (t *evolve.Table, location string, err error) {
	if err := hit("iceberg.alter.before-load"); err != nil {
		return nil, "", err
	}
	location, raw, missing, _, err := h.LoadTable(ctx, "")
	if err == nil && missing {
		err = sdk.Refuse(sdk.NotFound, "table %s does not exist", tableName(ref))
	}
	if err != nil {
		return nil, "", err
	}
	if t, err = evolve.Parse(raw); err != nil {
		return nil, "", permanent(ref, err)
	}
	return t, location, nil
}

// errLost: the answer to a request was lost, and the table has changed since, so that the request does not land any more if it has not.
var errLost = errors.New("the answer of the catalog was lost")

func (s *Sink) alterOnce(ctx context.Context, h Host, req *sinkv1.AlterTableRequest, maybe bool) (*sinkv1.AlterTableResponse, error) {
	t, location, err := s.evolving(ctx, h, req.GetTable())
	if err != nil {
		return nil, err
	}
	if t.Properties[propEncryptionKey] != "" {
		return nil, permanent(req.GetTable(), errors.New("it is encrypted, which Signet does not support"))
	}
	p, err := evolve.Changes(t, req.GetChanges(), evolve.Options{Now: s.now(), Again: maybe, CheckProperty: checkProperty})
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	resp := &sinkv1.AlterTableResponse{Location: location, Warnings: p.Warnings, Values: p.Values}
	if p.Head != nil {
		resp.Version = versionOf(*p.Head)
	}
	if p.Pick != nil {
		resp.Pick = versionOf(p.Pick.ID)
		return resp, nil
	}
	if p.Unchanged() || req.GetDryRun() {
		resp.Unchanged = p.Unchanged()
		return resp, nil
	}
	r := &request{requirements: p.Requirements, updates: p.Updates}
	requirements, updates, err := r.encode()
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	a := &alteration{sink: s, host: h, ref: req.GetTable(), plan: p, requirements: requirements, updates: updates}
	if resp.Location, err = a.send(ctx); err != nil {
		return nil, err
	}
	return resp, nil
}

// alteration is one request that changes a table.
type alteration struct {
	sink                  *Sink
	host                  Host
	ref                   *sinkv1.TableRef
	plan                  *evolve.Plan
	requirements, updates json.RawMessage
}

// send sends the request until it has a definite answer. An answer that is lost is looked for in the table. The very same request may be sent
// again: what it relies on is pinned by its requirements, and the rest comes out the same twice.
func (a *alteration) send(ctx context.Context) (location string, err error) {
	for n := 1; ; n++ {
		if err := hit("iceberg.alter.before-send"); err != nil {
			return "", err
		}
		location, _, err = a.host.CommitTable(ctx, a.requirements, a.updates)
		if err == nil {
			if err = fault.Hit("iceberg.alter.after-send"); err == nil {
				return location, nil
			}
		}
		refusal := new(sdk.RefusalError)
		if errors.As(err, &refusal) && refusal.Kind != sdk.Unknown && refusal.Kind != sdk.Conflict || ctx.Err() != nil {
			return "", err
		}
		lost := !errors.As(err, &refusal) || refusal.Kind == sdk.Unknown
		t, now, lookErr := a.sink.evolving(ctx, a.host, a.ref)
		switch {
		case lookErr == nil && a.plan.Made(t) && (lost || n > 1): // ours, or somebody's who made the same
			return now, nil
		case !lost && n == 1:
			return "", err
		case lookErr == nil && a.plan.Holds(t) != nil:
			return "", fmt.Errorf("%w: %w", sdk.Refuse(sdk.Conflict, "the table has changed meanwhile: %v", err), errLost)
		case n >= alterSends:
			return "", sdk.Refuse(sdk.Unknown, "table %s: the catalog gave no definite answer, and the change is not in the table yet; it may still come: look with DESCRIBE before it is made again (%v)", tableName(a.ref), err)
		}
		if err := a.sink.pause(ctx, n); err != nil {
			return "", err
		}
	}
}
