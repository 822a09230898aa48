package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/sources"
)

// reads signs those of an attempt or an analysis, in the order in which they are asked for: files of tables with their catalogs' credentials, sources with those of their prefix.
func (s *Server) reads(ctx context.Context, inputs []*planv1.Source, uris []string, until *time.Time) ([]*executorv1.SignedRequest, error) {
	scope := credentials.Scope{Reads: map[string]struct{}{}}
	for _, src := range inputs {
		for _, f := range src.GetFile().GetFiles() {
			if f.GetUri() != "" {
				scope.Reads[f.GetUri()] = struct{}{}
			}
		}
	}
	var tables []string
	for _, u := range uris {
		if _, ok := scope.Reads[u]; !ok {
			tables = append(tables, u)
		}
	}
	signed, err := s.signReads(ctx, inputs, tables, until)
	if err != nil {
		return nil, err
	}
	out := make([]*executorv1.SignedRequest, 0, len(uris))
	for _, u := range uris {
		if _, ok := scope.Reads[u]; !ok {
			out, signed = append(out, signed[0]), signed[1:]
			continue
		}
		source, err := s.signSource(ctx, scope, u)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", u, err)
		}
		out = append(out, signedRequest(u, source, until))
	}
	return out, nil
}

// signSource signs the read of a file below a prefix of sources.remote, which is looked up again: the configuration may be another one since the statement was planned.
func (s *Server) signSource(ctx context.Context, scope credentials.Scope, uri string) (objects.Signed, error) {
	signed, err := credentials.NewPresigned(func(ctx context.Context, uri string, what objects.Signing) (objects.Signed, error) {
		signed, err := s.sources.Sign(ctx, uri, what)
		if errors.Is(err, sources.ErrDenied) {
			err = fmt.Errorf("%w: %w", credentials.ErrRefused, err)
		}
		return signed, err
	}, 0).Read(ctx, scope, []string{uri})
	if err != nil {
		return objects.Signed{}, err
	}
	return signed[0], nil
}
