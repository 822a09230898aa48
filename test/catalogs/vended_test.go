package catalogs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/weed"
)

// vendor stands between the scheduler and SeaweedFS's catalog. It says of what is vended that it is over in a few seconds, and notes who asked.
type vendor struct {
	mu   sync.Mutex
	keys []string // secret ones, in their order
}

const vendedLife = 4 * time.Second

func (v *vendor) start(t *testing.T, server string) string {
	at, err := url.Parse(server)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(at); p.Out.Header.Set("Accept-Encoding", "identity") },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = v.shorten(r.Request, body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL
}

func (v *vendor) shorten(r *http.Request, body []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Header.Get("X-Iceberg-Access-Delegation") == "" {
		return body
	}
	var doc map[string]json.RawMessage
	var given []struct {
		Prefix string            `json:"prefix"`
		Config map[string]string `json:"config"`
	}
	if json.Unmarshal(body, &doc) != nil || json.Unmarshal(doc["storage-credentials"], &given) != nil {
		return body
	}
	for _, g := range given {
		v.keys = append(v.keys, g.Config["s3.secret-access-key"])
		g.Config["s3.session-token-expires-at-ms"] = strconv.FormatInt(time.Now().Add(vendedLife).UnixMilli(), 10)
	}
	doc["storage-credentials"], _ = json.Marshal(given)
	body, _ = json.Marshal(doc)
	return body
}

func (v *vendor) given() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.keys...)
}

// An INSERT takes longer than the credentials live that the catalog gives. They are asked for anew while it writes, and no executor ever has the key of one.
func TestVended_RefreshedInMidWrite(t *testing.T) {
	store := weed.Start(t)
	v := &vendor{}
	s := onWeed(t, store, v.start(t, store.REST))
	s.SQL("CREATE SCHEMA prod.demo; CREATE TABLE prod.demo.t (a BIGINT, b DOUBLE) TBLPROPERTIES ('write.target-file-size-bytes'='4194304', 'write.parquet.compression-codec'='uncompressed')")
	before := len(v.given())
	rows := 0
	for len(v.given()) < before+3 { // a fast machine needs more rows for it
		ended := make(chan harness.Result, 1)
		go func() {
			ended <- s.Run("sql", fmt.Sprintf("INSERT INTO prod.demo.t SELECT i, random() FROM range(%d) r(i)", batch))
		}()
		seen := 0
		for done := false; !done; {
			select {
			case r := <-ended:
				require.Zero(t, r.Code, r.Err)
				done = true
			case <-time.After(200 * time.Millisecond):
				all := v.given()
				for _, e := range s.Executors {
					for _, key := range all[seen:] {
						require.False(t, harness.MemoryHolds(t, e.PID(), []byte(key)), "a key is in an executor's memory")
					}
				}
				seen = len(all)
			}
		}
		rows += batch
		require.Less(t, rows, 50*batch)
	}
	t.Logf("%d rows, credentials were given %d times meanwhile", rows, len(v.given())-before)
	require.Equal(t, fmt.Sprint(rows), s.Value("SELECT count(*) FROM prod.demo.t"))
	log, err := os.ReadFile(s.SchedulerLog())
	require.NoError(t, err)
	for _, key := range v.given() {
		require.NotContains(t, string(log), key)
	}
}

// batch is how many rows one INSERT has.
const batch = 10_000_000
