package signed_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
)

// Clocks that count are stores': what is signed for them goes by theirs. A web server's is nobody's business.
func TestAhead_IsTheStores(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(5*time.Hour).UTC().Format(http.TimeFormat))
	}))
	t.Cleanup(srv.Close)
	c := signed.New()
	t.Cleanup(c.Close)
	for _, row := range []struct {
		uri  string
		want time.Duration
	}{{srv.URL + "/f.csv", 0}, {"s3://lake/f", 5 * time.Hour}, {srv.URL + "/f.csv", 5 * time.Hour}} {
		resp, err := c.Do(t.Context(), &executorv1.SignedRequest{Uri: row.uri, Method: http.MethodGet, Url: srv.URL + "/f"}, nil, nil, 0)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.InDelta(t, row.want.Minutes(), c.Ahead().Minutes(), 30, row.uri)
	}
}
