package glue

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/signet-io/signet/catalog"
)

// callTimeout bounds one call, its repetitions included. Glue takes below a second.
const callTimeout = time.Minute

// api are the calls that a catalog needs. They are functions, so that nothing holds the client itself as an interface: the linker then leaves out the other operations, some 270.
type api struct {
	getTable       func(context.Context, *glue.GetTableInput) (*glue.GetTableOutput, error)
	getTables      func(context.Context, *glue.GetTablesInput) (*glue.GetTablesOutput, error)
	getDatabase    func(context.Context, *glue.GetDatabaseInput) (*glue.GetDatabaseOutput, error)
	getDatabases   func(context.Context, *glue.GetDatabasesInput) (*glue.GetDatabasesOutput, error)
	createTable    func(context.Context, *glue.CreateTableInput) error
	updateTable    func(context.Context, *glue.UpdateTableInput) error
	deleteTable    func(context.Context, *glue.DeleteTableInput) error
	createDatabase func(context.Context, *glue.CreateDatabaseInput) error
}

func newAPI(c *glue.Client) *api {
	return &api{
		getTable: func(ctx context.Context, in *glue.GetTableInput) (*glue.GetTableOutput, error) {
			return read(ctx, in, c.GetTable)
		},
		getTables: func(ctx context.Context, in *glue.GetTablesInput) (*glue.GetTablesOutput, error) {
			return read(ctx, in, c.GetTables)
		},
		getDatabase: func(ctx context.Context, in *glue.GetDatabaseInput) (*glue.GetDatabaseOutput, error) {
			return read(ctx, in, c.GetDatabase)
		},
		getDatabases: func(ctx context.Context, in *glue.GetDatabasesInput) (*glue.GetDatabasesOutput, error) {
			return read(ctx, in, c.GetDatabases)
		},
		createTable: func(ctx context.Context, in *glue.CreateTableInput) error {
			return write(ctx, in, c.CreateTable, func(o *glue.CreateTableOutput) middleware.Metadata { return o.ResultMetadata })
		},
		updateTable: func(ctx context.Context, in *glue.UpdateTableInput) error {
			return write(ctx, in, c.UpdateTable, func(o *glue.UpdateTableOutput) middleware.Metadata { return o.ResultMetadata })
		},
		deleteTable: func(ctx context.Context, in *glue.DeleteTableInput) error {
			return write(ctx, in, c.DeleteTable, func(o *glue.DeleteTableOutput) middleware.Metadata { return o.ResultMetadata })
		},
		createDatabase: func(ctx context.Context, in *glue.CreateDatabaseInput) error {
			return write(ctx, in, c.CreateDatabase, func(o *glue.CreateDatabaseOutput) middleware.Metadata { return o.ResultMetadata })
		},
	}
}

// call is an operation of the client.
type call[In, Out any] func(context.Context, *In, ...func(*glue.Options)) (*Out, error)

// read asks, and asks again where that may help.
func read[In, Out any](ctx context.Context, in *In, do call[In, Out]) (*Out, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := do(ctx, in)
	switch {
	case err == nil:
		return out, nil
	case is[*types.EntityNotFoundException](err):
		return nil, fmt.Errorf("%w: %w", catalog.ErrNotFound, err)
	case definite(err):
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	return nil, err
}

// write sends a request once. Its errors are ErrNotSent, ErrPermanent, or say nothing about what was done.
func write[In, Out any](ctx context.Context, in *In, do call[In, Out], meta func(*Out) middleware.Metadata) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }, WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(true) }})
	out, err := do(ctx, in, func(o *glue.Options) { o.Retryer, o.RetryMaxAttempts = aws.NopRetryer{}, 1 })
	switch {
	case err == nil:
		if id, ok := awsmiddleware.GetRequestIDMetadata(meta(out)); !ok || id == "" {
			return errNoAnswer
		}
		return nil
	case !sent.Load():
		return fmt.Errorf("%w: %w", catalog.ErrNotSent, err)
	case definite(err):
		return fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	return err
}

// errNoAnswer: every answer of the service has a request id.
var errNoAnswer = errors.New("something answered that is not AWS Glue; see glue.endpoint")

// is says whether an error is an exception of that type.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// definite says whether the service has refused a request for what it is, or for who sent it: it has done nothing, and will do nothing when asked again.
func definite(err error) bool {
	var e smithy.APIError
	if !errors.As(err, &e) {
		return false
	}
	switch e.ErrorCode() {
	case "AccessDeniedException", "AccessDenied", "NotAuthorized", "OptInRequired", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException",
		"SignatureDoesNotMatch", "IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"ExpiredToken", "ExpiredTokenException", "RequestExpired",
		"InvalidInputException", "ValidationException", "SerializationException", "UnknownOperationException", "OperationNotSupportedException",
		"ResourceNumberLimitExceededException", "GlueEncryptionException", "RequestEntityTooLargeException":
		return true
	}
	return false
}
