package scheduler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/config"
)

// stsServer makes sessions as STS does, or refuses with a code.
func stsServer(t *testing.T, code *string) (endpoint string, asked func() []url.Values) {
	var mu sync.Mutex
	var all []url.Values
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r.PostForm)
		if *code != "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `<ErrorResponse><Error><Code>%s</Code><Message>no</Message></Error></ErrorResponse>`, *code)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>session-id</AccessKeyId><SecretAccessKey>session-secret</SecretAccessKey><SessionToken>session-token</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []url.Values {
		mu.Lock()
		defer mu.Unlock()
		out := all
		all = nil
		return out
	}
}

// J20: where a role is configured an attempt gets a session of it, which a policy bounds to the attempt's own prefix; where no policy can, requests are signed one by one.
func TestAccess_SessionOfOnePrefix_J20(t *testing.T) {
	code := ""
	endpoint, asked := stsServer(t, &code)
	cfg := config.Catalog{
		Properties:  map[string]string{"s3.endpoint": endpoint, "s3.region": "r-1", "scope": "x"},
		Credentials: config.Credentials{Mode: config.CredentialsAuto, RoleARN: "arn:aws:iam::1:role/r", Duration: 20 * time.Minute},
	}
	own := objects.Static(objects.Props{objects.AccessKeyID: "own-id", objects.SecretKey: "own-secret"})
	r, store, ref := remoteReport(t)
	var err error
	r.w.target.entry.sessions, err = newSessions(cfg, own)
	require.NoError(t, err)
	s := r.w.s
	ask := func() *executorv1.Access {
		return s.Access(t.Context(), "x", &executorv1.AccessRequest{Attempt: ref, Write: true, Puts: []*executorv1.PutRequest{{Name: "a", Head: true}}}, nil)
	}
	out := ask()
	require.Nil(t, out.GetError())
	prefix := attemptPrefix(r.w.spec, ref.JobId, 0, 0, ref.AttemptId)
	require.Equal(t, prefix, out.GetWrite().GetPrefix())
	require.Equal(t, map[string]string{
		"s3.endpoint": endpoint, "s3.region": "r-1", "s3.access-key-id": "session-id", "s3.secret-access-key": "session-secret", "s3.session-token": "session-token",
	}, out.GetWrite().GetProperties(), "no key of the scheduler's own, and nothing that is not about the store")
	require.Empty(t, out.GetPuts(), "the session signs them")
	require.Empty(t, store.signed)
	require.InDelta(t, 20*60*1000, out.GetValidMillis(), 60*1000)
	in := asked()
	require.Len(t, in, 1)
	require.Contains(t, in[0].Get("Policy"), `"Resource":["arn:aws:s3:::`+prefix[len("s3://"):]+`/*"]`)
	require.Equal(t, "1200", in[0].Get("DurationSeconds"))

	// An analysis, and an attempt that writes nothing, get none.
	require.NotNil(t, s.Access(t.Context(), "x", &executorv1.AccessRequest{Analysis: "q", Write: true}, &executorv1.Analyze{}).GetError())
	require.Empty(t, asked())

	// STS refuses: so it does for whoever asks, and the job is told.
	code = "AccessDenied"
	out = ask()
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, out.GetError().GetClass())
	require.Contains(t, out.GetError().GetMessage(), "trust policy")
	require.NotContains(t, out.GetError().GetMessage(), "own-secret")
	asked()
	code = "PackedPolicyTooLarge"
	out = ask()
	require.Nil(t, out.GetError())
	require.Nil(t, out.GetWrite())
	require.Len(t, out.GetPuts(), 1, "signed one by one")
	code = ""
	asked()

	// Names that a policy engine could read as more than they say.
	for _, data := range []string{"s3://lake/wh/s*/t/data", "s3://lake/wh/${aws:username}/data", "s3://lake/wh/é/data", "s3://lake/wh/a b/data", "s3://lake/wh/a?/data"} {
		r.w.spec.DataLocation = data
		out = ask()
		require.Nil(t, out.GetError(), data)
		require.Nil(t, out.GetWrite(), data)
		require.Len(t, out.GetPuts(), 1, data)
		require.Empty(t, asked(), data)
	}

	cfg.Credentials.RoleARN = ""
	none, err := newSessions(cfg, own)
	require.NoError(t, err)
	require.Nil(t, none)
	cfg.Credentials = config.Credentials{Mode: config.CredentialsPresigned}
	none, err = newSessions(cfg, own)
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestOpenStores(t *testing.T) {
	local := config.Catalog{Warehouse: "file:///wh", Properties: map[string]string{"scope": "x"}}
	opener, sessions, err := openStores(local)
	require.NoError(t, err)
	require.Nil(t, sessions)
	_, err = opener.Open(t.Context(), "file:///wh")
	require.NoError(t, err)
	_, err = opener.Open(t.Context(), "s3://lake/wh")
	require.Error(t, err)

	remote := config.Catalog{Warehouse: "s3://lake/wh", Properties: map[string]string{"s3.endpoint": "http://127.0.0.1:1"}}
	opener, sessions, err = openStores(remote)
	require.NoError(t, err)
	require.Nil(t, sessions)
	for _, place := range []string{"s3://lake/wh", "file:///data"} {
		_, err = opener.Open(t.Context(), place)
		require.NoError(t, err, place)
	}
	remote.Properties = nil
	_, _, err = openStores(remote)
	require.ErrorContains(t, err, "s3.region")
	remote.Properties = map[string]string{"s3.region": "r", "s3.role-arn": "nonsense"}
	_, _, err = openStores(remote)
	require.ErrorContains(t, err, "s3.role-arn")
	remote.Properties, remote.Credentials = map[string]string{"s3.region": "r"}, config.Credentials{RoleARN: "nonsense"}
	_, _, err = openStores(remote)
	require.ErrorContains(t, err, "credentials")
}
