package broker

import (
	"context"
	"errors"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/fault"
)

// CreateTable creates an empty table where the lease allows it.
func (s *catalogService) CreateTable(ctx context.Context, r *hostv1.CreateTableRequest) (*hostv1.CreateTableResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.mayDefine(l.spec.AllowCreate, "create"); err != nil {
		return nil, err
	}
	location, err := l.defaultLocation(ctx)
	if err != nil {
		return nil, s.b.explain(l, "choose a location", err)
	}
	if r.GetLocation() != "" && !sameLocation(r.GetLocation(), location) {
		return nil, refuse(kindPermanent, "location %q: the job may create its table at %q only", r.GetLocation(), location)
	}
	if err := l.vetTableProperties(r.GetProperties(), location); err != nil {
		return nil, err
	}
	if err := fault.Hit("broker.create.before"); err != nil {
		return nil, s.b.explain(l, "create table", err)
	}
	// Not ended by the plugin: a create that is cut in the middle has no answer.
	t, err := l.spec.Catalog.Create(context.WithoutCancel(ctx), l.spec.Ident, catalog.CreateSpec{
		Schema: r.GetSchema(), PartitionSpec: r.GetPartitionSpec(), SortOrder: r.GetSortOrder(), Properties: r.GetProperties(), Location: location,
	})
	if err == nil {
		err = fault.Hit("broker.create.after")
	}
	if err != nil {
		return nil, s.b.explain(l, "create table", unknownUnlessDefinite(err))
	}
	l.mu.Lock()
	l.last, l.missing = t, false
	l.mu.Unlock()
	raw, err := l.rawMetadata(ctx, t)
	if err != nil { // it exists; the caller can load it
		return &hostv1.CreateTableResponse{Location: t.MetadataLocation}, nil //nolint:nilerr // see above
	}
	return &hostv1.CreateTableResponse{Location: t.MetadataLocation, Metadata: raw}, nil
}

// DropTable removes the table from the catalog; its files stay.
func (s *catalogService) DropTable(ctx context.Context, _ *hostv1.DropTableRequest) (*hostv1.DropTableResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.mayDefine(l.spec.AllowDrop, "drop"); err != nil {
		return nil, err
	}
	if err := fault.Hit("broker.drop.before"); err != nil {
		return nil, s.b.explain(l, "drop table", err)
	}
	err = l.spec.Catalog.Drop(context.WithoutCancel(ctx), l.spec.Ident)
	if err == nil {
		err = fault.Hit("broker.drop.after")
	}
	if err != nil {
		return nil, s.b.explain(l, "drop table", unknownUnlessDefinite(err))
	}
	return &hostv1.DropTableResponse{}, nil
}

func (l *Lease) mayDefine(allowed bool, what string) error {
	if err := l.live(); err != nil {
		return err
	}
	switch {
	case !allowed || l.spec.ReadOnly:
		return refuse(kindPermanent, "the lease does not allow to %s table %s", what, l.spec.Ident)
	case l.spec.Catalog == nil:
		return refuse(kindPermanent, "this table has no catalog")
	}
	return nil
}

// unknownUnlessDefinite: an error that says nothing about what happened must not look like "nothing was sent".
func unknownUnlessDefinite(err error) error {
	for _, def := range []error{catalog.ErrExists, catalog.ErrNotFound, catalog.ErrPermanent, catalog.ErrConflict, catalog.ErrNotSent} {
		if errors.Is(err, def) {
			return err
		}
	}
	return errors.Join(refuse(kindUnknown, "no definite answer from the catalog: look whether the table exists"), err)
}
