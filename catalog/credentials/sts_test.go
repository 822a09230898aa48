package credentials

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// fakeSTS answers as STS does.
type fakeSTS struct {
	*httptest.Server
	mu    sync.Mutex
	asked []url.Values
	skew  time.Duration // of its clock
	code  string        // of the error that it answers
	fails int           // so often
	n     atomic.Int64
}

func newFakeSTS(t *testing.T) *fakeSTS {
	f := &fakeSTS{}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeSTS) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.PostForm)
	now := time.Now().Add(f.skew).UTC()
	w.Header().Set("Date", now.Format(http.TimeFormat))
	w.Header().Set("Content-Type", "text/xml")
	if f.fails > 0 {
		f.fails--
		w.WriteHeader(http.StatusForbidden)
		if f.code == "Throttling" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>said the server</Message></Error><RequestId>r</RequestId></ErrorResponse>`, f.code)
		return
	}
	life, _ := time.ParseDuration(r.PostForm.Get("DurationSeconds") + "s")
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>K%d</AccessKeyId><SecretAccessKey>canary</SecretAccessKey><SessionToken>T</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		f.n.Add(1), now.Add(life).Format(time.RFC3339))
}

func (f *fakeSTS) open(t *testing.T, o STSOptions) *STS {
	o.Endpoint = f.URL
	if o.RoleARN == "" {
		o.RoleARN = "arn:aws:iam::123456789012:role/Executor"
	}
	o.Source = func(context.Context) (objects.Credentials, error) {
		return objects.Credentials{AccessKeyID: "own", SecretAccessKey: "canary"}, nil
	}
	s, err := NewSTS(o)
	require.NoError(t, err)
	return s
}

func TestSTS_Session(t *testing.T) {
	f := newFakeSTS(t)
	s := f.open(t, STSOptions{ExternalID: "x"})
	for _, skew := range []time.Duration{0, -5 * time.Hour, 5 * time.Hour} {
		f.skew = skew
		c, left, err := s.Session(t.Context(), "job/é 1", `{"a":1}`, 20*time.Minute)
		require.NoError(t, err)
		assert.Equal(t, "canary", c.SecretAccessKey)
		assert.InDelta(t, 20*60, left.Seconds(), 60, "by the server's clock, which is %s off", skew)
		assert.InDelta(t, 20*60, time.Until(c.Expires).Seconds(), 60)
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s", c, c, c, c), "canary")
	}
	in := f.asked[0]
	assert.Equal(t, []string{"AssumeRole", "arn:aws:iam::123456789012:role/Executor", "signet-job---1", `{"a":1}`, "1200", "x"},
		[]string{in.Get("Action"), in.Get("RoleArn"), in.Get("RoleSessionName"), in.Get("Policy"), in.Get("DurationSeconds"), in.Get("ExternalId")})
	for life, want := range map[time.Duration]string{0: "900", time.Minute: "900", 9 * time.Hour: "3600"} {
		_, _, err := s.Session(t.Context(), "j", "", life)
		require.NoError(t, err)
		assert.Equal(t, want, f.asked[len(f.asked)-1].Get("DurationSeconds"))
	}
}

func TestSTS_Errors(t *testing.T) {
	f := newFakeSTS(t)
	s := f.open(t, STSOptions{})
	for code, want := range map[string]error{
		"PackedPolicyTooLarge": ErrPolicyTooLarge, "AccessDenied": ErrAssume, "InvalidClientTokenId": ErrAssume, "ExpiredToken": objects.ErrExpired, "MalformedPolicyDocument": ErrAssume,
	} {
		f.code, f.fails = code, 1
		_, _, err := s.Session(t.Context(), "j", "{}", time.Hour)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, code)
		require.ErrorContains(t, err, "role/Executor")
		require.ErrorContains(t, err, "said the server")
		require.NotContains(t, err.Error(), "canary")
	}
	f.code, f.fails = "Throttling", 2
	_, _, err := s.Session(t.Context(), "j", "{}", time.Hour)
	require.NoError(t, err, "asked again")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Session(ctx, "j", "{}", time.Hour)
	require.ErrorIs(t, err, context.Canceled)
	f.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _, err = s.Session(ctx, "j", "{}", time.Hour)
	require.ErrorContains(t, err, "role/Executor")
}

func TestNewSTS(t *testing.T) {
	source := func(context.Context) (objects.Credentials, error) { return objects.Credentials{}, nil }
	for arn, partition := range map[string]string{
		"arn:aws:iam::1:role/a/b": "aws", "arn:aws-cn:iam::1:role/a": "aws-cn", "arn:aws-us-gov:iam::1:role/a": "aws-us-gov", "arn:aws:iam::role/Executor": "aws",
	} {
		s, err := NewSTS(STSOptions{RoleARN: arn, Source: source})
		require.NoError(t, err, arn)
		assert.Equal(t, partition, s.Partition())
	}
	for _, arn := range []string{"", "Executor", "arn:aws:iam::1:user/a", "arn:x:iam::1:role/a", "arn:aws:s3:::b/*"} {
		_, err := NewSTS(STSOptions{RoleARN: arn, Source: source})
		require.ErrorContains(t, err, "want arn:aws:iam::ACCOUNT:role/NAME", arn)
	}
	_, err := NewSTS(STSOptions{RoleARN: "arn:aws:iam::1:role/a"})
	require.ErrorContains(t, err, "no credentials")
}

func TestRoleSource(t *testing.T) {
	f := newFakeSTS(t)
	s := f.open(t, STSOptions{})
	source := RoleSource(s, "scheduler", time.Hour)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c, err := source(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, "K1", c.AccessKeyID, "asked for once")
		})
	}
	wg.Wait()

	r := &renewing{fetch: func(ctx context.Context) (objects.Credentials, time.Duration, error) {
		return s.Session(ctx, "x", "", time.Hour)
	}}
	r.now, r.renew = objects.Credentials{AccessKeyID: "old", Expires: time.Now().Add(10 * time.Minute)}, time.Now().Add(-time.Minute)
	f.code, f.fails = "AccessDenied", 1
	c, err := r.credentials(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "old", c.AccessKeyID, "it still lives")
	r.now.Expires, r.renew = time.Now(), time.Time{}
	f.fails = 1
	_, err = r.credentials(t.Context())
	require.ErrorIs(t, err, ErrAssume)
	c, err = r.credentials(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "K2", c.AccessKeyID)
}

// A session that a store refuses as expired is not taken from the cache once more; one that was just made is.
func TestRoleSource_RefusedByTheStore(t *testing.T) {
	f := newFakeSTS(t)
	server := objectstest.Start(t)
	sts := f.open(t, STSOptions{})
	r := &renewing{fetch: func(ctx context.Context) (objects.Credentials, time.Duration, error) {
		return sts.Session(ctx, "x", "", time.Hour)
	}}
	r.now, r.renew, r.made = objects.Credentials{AccessKeyID: "old", SecretAccessKey: "s", Expires: time.Now().Add(time.Hour)}, time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	c, err := objects.NewS3(server.Props(), objectstest.Bucket, r.credentials)
	require.NoError(t, err)
	server.Fail(objectstest.Fault{Status: http.StatusBadRequest, Code: "ExpiredToken"})
	_, err = c.Put(t.Context(), "k", objects.Bytes(nil), objects.PutOptions{})
	require.NoError(t, err)
	require.Equal(t, "K1", r.now.AccessKeyID)
	server.Fail(objectstest.Fault{Status: http.StatusBadRequest, Code: "ExpiredToken"})
	_, err = c.Put(t.Context(), "k", objects.Bytes(nil), objects.PutOptions{})
	require.NoError(t, err)
	require.Equal(t, "K1", r.now.AccessKeyID)
}
