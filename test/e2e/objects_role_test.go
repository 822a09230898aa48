package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// roleStore is an object store, and the STS beside it. It takes writes of data files only with sessions of the role, and no session for long: what outlives one goes on with the next.
type roleStore struct {
	*httptest.Server
	mu       sync.Mutex
	sessions int
	policies map[string]string // by session
	uses     map[string]int
	limit    int // requests that a session may sign
	wrong    []string
}

func newRoleStore(t *testing.T, store *objectstest.Server, limit int) *roleStore {
	at, err := url.Parse(store.URL)
	require.NoError(t, err)
	r := &roleStore{policies: map[string]string{}, uses: map[string]int{}, limit: limit}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(at); p.Out.Host = p.In.Host }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		if in.Method == http.MethodPost && in.URL.Path == "/" {
			r.assume(w, in)
			return
		}
		if code := r.denies(in); code != "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>not so</Message></Error>", code)
			return
		}
		proxy.ServeHTTP(w, in)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *roleStore) assume(w http.ResponseWriter, in *http.Request) {
	_ = in.ParseForm()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions++
	id := fmt.Sprintf("session%d", r.sessions)
	r.policies[id] = in.PostForm.Get("Policy")
	fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		id, time.Now().Add(15*time.Minute).UTC().Format(time.RFC3339))
}

// denies looks at requests for data files of attempts that are not reads.
func (r *roleStore) denies(in *http.Request) string {
	if in.Method == http.MethodGet || in.Method == http.MethodDelete || !strings.Contains(in.URL.Path, "/data/") {
		return ""
	}
	q := in.URL.Query()
	id, _, _ := strings.Cut(q.Get("X-Amz-Credential"), "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	policy, known := r.policies[id]
	if in.Method == http.MethodHead && !known {
		return "" // the scheduler looks whether the file is there
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(in.URL.Path, "/"), "/")
	dir := in.URL.Path[1:strings.LastIndexByte(in.URL.Path, '/')]
	switch {
	case !known:
		r.wrong = append(r.wrong, in.Method+" "+in.URL.Path+" is signed by "+id)
	case !strings.Contains(policy, `"Resource":["arn:aws:s3:::`+dir+`/*"]`) || bucket != objectstest.Bucket:
		r.wrong = append(r.wrong, in.URL.Path+" is outside of "+policy)
	case r.uses[id] >= r.limit:
		return "ExpiredToken"
	default:
		r.uses[id]++
		return ""
	}
	return "AccessDenied"
}

// Where the catalog has a role, executors write with sessions of it: one attempt's prefix each, as many one after the other as it takes.
func TestObjects_SessionsOfARole(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	front := newRoleStore(t, store, 7)
	c := harness.New(t, harness.Options{
		Executors:    2,
		SchedulerEnv: []string{"TEST_STORE_KEY=" + storeKey, "TEST_STORE_SECRET=" + storeSecret},
		CatalogConfig: fmt.Sprintf("  s3:\n    type: sql\n    uri: sqlite://%s/s3.db\n    warehouse: s3://%s/wh\n    properties: {s3.endpoint: %q}\n"+
			"    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n"+
			"    credentials: {role_arn: 'arn:aws:iam::123456789012:role/executor', duration: 15m}\n", t.TempDir(), objectstest.Bucket, front.URL),
	})
	// 20 partitions are more files than one session may write here, and the large one is written in parts.
	c.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.t (id BIGINT, p INTEGER) PARTITIONED BY (p); INSERT INTO s3.s.t SELECT i, i % 20 FROM range(2000) r(i)")
	require.Equal(t, "2000", c.Value("SELECT count(*) FROM s3.s.t"))
	c.SQL("CREATE TABLE s3.s.big (a BIGINT, b DOUBLE) TBLPROPERTIES ('write.parquet.compression-codec'='uncompressed'); INSERT INTO s3.s.big SELECT i, random() FROM range(12000000) r(i)")
	require.Equal(t, "12000000", c.Value("SELECT count(*) FROM s3.s.big"))
	c.SQL("DELETE FROM s3.s.t WHERE id < 100")
	require.Equal(t, "1900", c.Value("SELECT count(*) FROM s3.s.t"))
	front.mu.Lock()
	defer front.mu.Unlock()
	require.Empty(t, front.wrong)
	require.Greater(t, front.sessions, 6)
}
