package sinktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/internal/rpc"
)

// Catalog is one table of a catalog, for sinks with COMMIT_POINT_CATALOG. Package icecatalog has one over SQLite. Errors are *sdk.RefusalError; any other
// error leaves the outcome unknown.
type Catalog interface {
	// Location is where the table lies, or would be made.
	Location() string
	// Load gives the table's metadata and where it is; nil: there is no table.
	Load(ctx context.Context) (location string, metadata []byte, err error)
	// Commit applies updates if the requirements hold; both are Iceberg REST JSON arrays.
	Commit(ctx context.Context, requirements, updates []byte) (location string, err error)
	Create(ctx context.Context, req *hostv1.CreateTableRequest) (location string, metadata []byte, err error)
	Drop(ctx context.Context) error
	// Object is a file that the catalog itself wrote; nil: it wrote none of that name.
	Object(uri string) ([]byte, error)
	Close() error
}

type catalogService struct {
	hostv1.UnimplementedCatalogServer
	h *Host
}

func (s catalogService) LoadTable(req *hostv1.LoadTableRequest, out hostv1.Catalog_LoadTableServer) error {
	if _, err := s.h.enter(out.Context(), "LoadTable"); err != nil {
		return err
	}
	missing := &hostv1.LoadTableResponse{Missing: true, DefaultLocation: s.h.Location}
	if s.h.catalog == nil {
		return out.Send(missing)
	}
	location, metadata, err := s.h.catalog.Load(out.Context())
	switch {
	case err != nil:
		return err
	case metadata == nil:
		return out.Send(missing)
	case location == req.GetKnownLocation():
		return out.Send(&hostv1.LoadTableResponse{Location: location, Unchanged: true})
	}
	for chunk := range slices.Chunk(metadata, rpc.Chunk) {
		if err := out.Send(&hostv1.LoadTableResponse{Location: location, Metadata: chunk}); err != nil {
			return err
		}
	}
	return nil
}

func (s catalogService) CommitTable(in hostv1.Catalog_CommitTableServer) error {
	l, err := s.h.enter(in.Context(), "CommitTable")
	if err != nil {
		return err
	}
	var requirements, updates []byte
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		requirements, updates = append(requirements, m.GetRequirements()...), append(updates, m.GetUpdates()...)
	}
	if s.h.catalog == nil {
		return s.h.overstepped("commit to the catalog of a table that has none")
	}
	point := &hostv1.CommitPoint{Markers: l.markers}
	if point.Version, point.Parent, err = snapshotOf(updates); err != nil {
		return s.h.overstepped("updates that are no JSON array: %v", err)
	}
	var location string
	land := func() (err error) {
		location, err = s.h.catalog.Commit(in.Context(), requirements, updates)
		return err
	}
	for _, m := range l.markers {
		if !bytes.Contains(updates, []byte(m)) {
			return s.h.overstepped("a commit that does not carry the marker %s", m)
		}
	}
	if l.use == defining {
		err = land()
	} else {
		err = s.h.point(in.Context(), l, point, land)
	}
	if err != nil {
		return err
	}
	return in.SendAndClose(&hostv1.CommitTableResponse{Location: location, Version: point.GetVersion()})
}

// snapshotOf finds the snapshot that updates add, and its parent; empty: they add none.
func snapshotOf(updates []byte) (id, parent string, err error) {
	var all []struct {
		Snapshot *struct {
			ID     int64  `json:"snapshot-id"`
			Parent *int64 `json:"parent-snapshot-id"`
		} `json:"snapshot"`
	}
	if err := json.Unmarshal(updates, &all); err != nil {
		return "", "", err
	}
	for _, u := range all {
		if u.Snapshot == nil {
			continue
		}
		id = strconv.FormatInt(u.Snapshot.ID, 10)
		if p := u.Snapshot.Parent; p != nil {
			parent = strconv.FormatInt(*p, 10)
		}
	}
	return id, parent, nil
}

func (s catalogService) CreateTable(ctx context.Context, req *hostv1.CreateTableRequest) (*hostv1.CreateTableResponse, error) {
	l, err := s.h.enter(ctx, "CreateTable")
	switch {
	case err != nil:
		return nil, err
	case s.h.catalog == nil || l.use != defining && l.use != anything:
		return nil, s.h.overstepped("create a table of the catalog")
	}
	location, metadata, err := s.h.catalog.Create(ctx, req)
	if err != nil {
		return nil, err
	}
	return &hostv1.CreateTableResponse{Location: location, Metadata: metadata}, nil
}

func (s catalogService) DropTable(ctx context.Context, _ *hostv1.DropTableRequest) (*hostv1.DropTableResponse, error) {
	l, err := s.h.enter(ctx, "DropTable")
	switch {
	case err != nil:
		return nil, err
	case s.h.catalog == nil || l.use != defining && l.use != anything:
		return nil, s.h.overstepped("drop a table of the catalog")
	}
	if err := s.h.catalog.Drop(ctx); err != nil {
		return nil, err
	}
	return &hostv1.DropTableResponse{}, nil
}
