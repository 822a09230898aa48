package broker

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
)

// What is wrong with the object store is told, with what to do; where it is is not.
func TestToRefusal_ObjectStore(t *testing.T) {
	for want, e := range map[string]*objects.Error{
		"load table failed: the object store: access denied (InvalidAccessKeyId); correct the key": {Code: "InvalidAccessKeyId", Hint: "correct the key", Err: fmt.Errorf("%w: canary", objects.ErrDenied)},
		"load table failed: the object store: no such bucket (NoSuchBucket)":                       {Code: "NoSuchBucket", Err: objects.ErrNoBucket},
		"load table failed: the object store did not answer as it should; start it":                {Hint: "start it", Err: errors.New("dial canary")},
	} {
		e.Op, e.URI = "get", "s3://canary/canary"
		got := toRefusal("load table", fmt.Errorf("read metadata: %w", e))
		require.EqualError(t, got, want)
		r := new(Refusal)
		require.ErrorAs(t, got, &r)
		require.Equal(t, kindRetryable, r.Kind)
	}
}
