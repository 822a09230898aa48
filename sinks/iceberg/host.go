package iceberg

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// Host is what the sink needs of the host, bound to one job and one table. *sdk.Host is one. Refusals are *sdk.RefusalError; after any other
// error of CommitTable the outcome is unknown.
type Host interface {
	LoadTable(ctx context.Context, known string) (location string, metadata []byte, missing bool, defaultLocation string, err error)
	CommitTable(ctx context.Context, requirements, updates []byte) (location, version string, err error)
	CreateTable(ctx context.Context, req *hostv1.CreateTableRequest) (location string, metadata []byte, err error)
	DropTable(ctx context.Context) error
	Get(ctx context.Context, uri string) ([]byte, error)
	PutIfAbsent(ctx context.Context, uri string, body []byte, opts ...sdk.PutOption) (*hostv1.PutIfAbsentResponse, error)
}

var _ Host = (*sdk.Host)(nil)

// hostError tells what the host said, or that it said nothing, from what the sink found out.
func hostError(err error) bool {
	if r := new(sdk.RefusalError); errors.As(err, &r) {
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || status.Code(err) != codes.Unknown
}
