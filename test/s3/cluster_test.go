package s3_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/weed"
)

const bucket = "lake"

// session is what STS has answered for one attempt.
type session struct {
	ID, Secret, Token string
	resource          string // of the policy that was asked for
}

// prefix is the key below which the session may write, with the slash.
func (s session) prefix() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.resource, "arn:aws:s3:::"+bucket+"/"), "*")
}

// world is a cluster whose catalog `s3` has its tables on SeaweedFS, and whose executors write with sessions of a role.
type world struct {
	*harness.Cluster
	server *weed.Server

	mu       sync.Mutex
	sessions []session
}

func start(t testing.TB, executors int) *world {
	return startOn(t, weed.Start(t), executors, "", true)
}

// startOn starts the cluster with more configuration. Without a session requests are signed one by one.
func startOn(t testing.TB, server *weed.Server, executors int, config string, sessions bool) *world {
	w := &world{server: server}
	role := ""
	if sessions {
		role = fmt.Sprintf("    credentials: {role_arn: '%s', sts_endpoint: %q}\n", server.RoleARN, w.listen(t))
	}
	admin := w.client(session{ID: w.server.AccessKey, Secret: w.server.SecretKey})
	_, err := admin.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	w.Cluster = harness.New(t, harness.Options{
		Executors:    executors,
		Config:       config,
		SchedulerEnv: []string{"TEST_STORE_KEY=" + w.server.AccessKey, "TEST_STORE_SECRET=" + w.server.SecretKey},
		CatalogConfig: fmt.Sprintf("  s3:\n    type: sql\n    uri: sqlite://%s/s3.db\n    warehouse: s3://%s/wh\n%[3]s  delta:\n    type: delta\n    root: s3://%[2]s/delta\n%[3]s", t.TempDir(), bucket,
			fmt.Sprintf("    properties: {s3.endpoint: %q}\n    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n%s", w.server.Endpoint, role)),
	})
	return w
}

// listen stands between the scheduler and STS, and notes what is given.
func (w *world) listen(t testing.TB) string {
	at, err := url.Parse(w.server.Endpoint)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(at); p.Out.Host = p.In.Host }}
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		in.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		rec := httptest.NewRecorder()
		proxy.ServeHTTP(rec, in)
		w.note(form.Get("Policy"), rec.Body.Bytes())
		for k, v := range rec.Header() {
			out.Header()[k] = v
		}
		out.WriteHeader(rec.Code)
		_, _ = out.Write(rec.Body.Bytes())
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func (w *world) note(policy string, answer []byte) {
	var doc struct{ Statement []struct{ Resource []string } }
	var out struct {
		ID     string `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
		Secret string `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
		Token  string `xml:"AssumeRoleResult>Credentials>SessionToken"`
	}
	if json.Unmarshal([]byte(policy), &doc) != nil || xml.Unmarshal(answer, &out) != nil || out.Token == "" || len(doc.Statement) != 1 || len(doc.Statement[0].Resource) != 1 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions = append(w.sessions, session{out.ID, out.Secret, out.Token, doc.Statement[0].Resource[0]})
}

func (w *world) given() []session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]session(nil), w.sessions...)
}

// client is S3 for whoever has keys.
func (w *world) client(k session) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(w.server.Endpoint), UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(k.ID, k.Secret, k.Token),
	})
}

func (w *world) admin() *s3.Client {
	return w.client(session{ID: w.server.AccessKey, Secret: w.server.SecretKey})
}
