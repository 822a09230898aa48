package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/sources"
)

// signSource signs the read of a file below a prefix of sources.remote, which is looked up again: the configuration may be another one since the statement was planned. What is
// not in the scope, and files of catalogs that are no more, it refuses.
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
