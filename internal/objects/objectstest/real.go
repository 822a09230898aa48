package objectstest

import (
	"os"
	"testing"

	"github.com/google/uuid"

	"github.com/signet-io/signet/internal/objects"
)

// Real leads to a real server, and to a prefix of its own in a bucket that exists: SIGNET_TEST_S3 is its endpoint, SIGNET_TEST_S3_BUCKET, SIGNET_TEST_S3_KEY and
// SIGNET_TEST_S3_SECRET say the rest. The test is skipped where they are not set.
func Real(t testing.TB) (p objects.Props, bucket, prefix string) {
	t.Helper()
	endpoint := os.Getenv("SIGNET_TEST_S3")
	if endpoint == "" {
		t.Skip("SIGNET_TEST_S3 is not set")
	}
	return objects.Props{
		objects.Endpoint: endpoint, objects.AccessKeyID: os.Getenv("SIGNET_TEST_S3_KEY"), objects.SecretKey: os.Getenv("SIGNET_TEST_S3_SECRET"),
	}, os.Getenv("SIGNET_TEST_S3_BUCKET"), "test-" + uuid.NewString()
}
