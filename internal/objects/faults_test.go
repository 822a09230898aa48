package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

var ifAbsent = objects.PutOptions{IfAbsent: true}

// C3: every way in which the answer to a conditional write can be lost ends in the outcome that the store holds.
func TestPut_412AfterLostReplyIsOurs(t *testing.T) {
	for name, f := range map[string]objectstest.Fault{
		"cut before": {}, "cut after": {Apply: true}, "half an answer": {Apply: true, Body: 1}, "500 before": {Status: 500, Code: "InternalError"},
		"500 after": {Apply: true, Status: 500, Code: "InternalError"}, "502 of a proxy": {Apply: true, Status: 502}, "503 of a proxy": {Apply: true, Status: 503}, "504": {Apply: true, Status: 504},
		"412 though it took effect": {Apply: true, Status: 412, Code: "PreconditionFailed"}, "slow down": {Status: 503, Code: "SlowDown"}, "429": {Status: 429},
		"D5 conflict": {Status: 409, Code: "ConditionalRequestConflict"}, "timeout": {Status: 400, Code: "RequestTimeout"}, "damaged": {Status: 400, Code: "BadDigest"},
	} {
		t.Run(name, func(t *testing.T) {
			f.Method = http.MethodPut
			s, c := start(t)
			s.Fail(f)
			_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), ifAbsent)
			require.NoError(t, err)
			require.Zero(t, s.Pending())
			_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("other")), ifAbsent)
			require.ErrorIs(t, err, objects.ErrExists)

			s.Fail(f) // now somebody else's object is there
			f.Apply = false
			_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("other")), ifAbsent)
			require.ErrorIs(t, err, objects.ErrExists)
			require.NotErrorIs(t, err, objects.ErrUnknown)
			text, info, err := get(c, "k", 0, -1, "")
			require.NoError(t, err)
			require.Equal(t, "mine", text)

			s.Fail(f)
			_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("next")), objects.PutOptions{IfMatch: info.ETag})
			require.NoError(t, err)
			_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("more")), objects.PutOptions{IfMatch: info.ETag})
			require.ErrorIs(t, err, objects.ErrChanged)
		})
	}
}

// D5: a conflict of conditional writes decides nothing, and is asked again as long as it takes, within bounds.
func TestPut_409IsTriedAgain(t *testing.T) {
	s, c := start(t)
	s.Fail(objectstest.Fault{Method: http.MethodPut, Status: 409, Code: "ConditionalRequestConflict", Times: 4})
	_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), ifAbsent)
	require.NoError(t, err)
	require.Zero(t, s.Pending())
	s.Fail(objectstest.Fault{Method: http.MethodPut, Status: 409, Code: "ConditionalRequestConflict", Times: 100})
	_, err = c.Put(t.Context(), "k2", objects.Bytes([]byte("mine")), ifAbsent)
	require.ErrorIs(t, err, objects.ErrBusy)
	require.NotErrorIs(t, err, objects.ErrUnknown, "the store has said that nothing happened")
}

// What could not be found out is said to be unknown, and never ErrExists or ErrChanged.
func TestPut_UnknownIsSaid(t *testing.T) {
	for name, head := range map[string]objectstest.Fault{"cut": {}, "denied": {Status: 403}, "500": {Status: 500}} {
		for _, apply := range []bool{false, true} {
			s, c := start(t)
			head.Method, head.Times = http.MethodHead, 1000
			s.Fail(objectstest.Fault{Method: http.MethodPut, Apply: apply, Times: 1000}, head)
			_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), ifAbsent)
			require.ErrorIs(t, err, objects.ErrUnknown, name)
			require.NotErrorIs(t, err, objects.ErrExists, name)
			_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), objects.PutOptions{IfMatch: `"x"`})
			require.ErrorIs(t, err, objects.ErrUnknown, name)
			require.NotErrorIs(t, err, objects.ErrChanged, name)
			require.NotErrorIs(t, err, objects.ErrNotFound, name)
		}
	}
	s, c := start(t) // lost, then refused for good
	s.Fail(objectstest.Fault{Method: http.MethodPut}, objectstest.Fault{Method: http.MethodPut, Status: 403, Code: "AccessDenied", Skip: 0})
	_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), ifAbsent)
	require.ErrorIs(t, err, objects.ErrUnknown)
	require.ErrorIs(t, err, objects.ErrDenied)

	ctx, cancel := context.WithCancel(t.Context())
	s.Fail(objectstest.Fault{Method: http.MethodPut, Apply: true, Match: func(*http.Request) bool { cancel(); return true }})
	_, err = c.Put(ctx, "k2", objects.Bytes([]byte("mine")), ifAbsent)
	require.ErrorIs(t, err, objects.ErrUnknown)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Put(ctx, "k3", objects.Bytes([]byte("mine")), ifAbsent)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, objects.ErrUnknown, "nothing was sent")
}

func TestPut_NoConditions(t *testing.T) {
	s, c := start(t)
	s.Fail(objectstest.Fault{Method: http.MethodPut, Status: 501, Code: "NotImplemented"})
	_, err := c.Put(t.Context(), "k", objects.Bytes(nil), ifAbsent)
	require.ErrorContains(t, err, "knows no conditional writes")
	require.Len(t, s.Log(), 1)
}

// A write that replaced a version, was lost, and replaced in turn is not said to have failed.
func TestPut_ReplacedMeanwhile(t *testing.T) {
	s, c := start(t)
	base := put(t, c, "k", "0")
	s.Fail(objectstest.Fault{Method: http.MethodPut, Apply: true}, objectstest.Fault{Method: http.MethodHead, Match: func(*http.Request) bool {
		put(t, s.Client(t), "k", "theirs")
		return false
	}})
	_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), objects.PutOptions{IfMatch: base.ETag})
	require.ErrorIs(t, err, objects.ErrUnknown)
	require.NotErrorIs(t, err, objects.ErrChanged)
}

func TestUpload_Faults(t *testing.T) {
	faults := map[string]objectstest.Fault{
		"cut before": {}, "cut after": {Apply: true}, "500 before": {Status: 500, Code: "InternalError"}, "500 after": {Apply: true, Status: 500}, "slow": {Status: 503, Code: "SlowDown"}, "429": {Status: 429},
	}
	steps := map[string]func(*http.Request) bool{
		"begin":    func(r *http.Request) bool { return r.URL.Query().Has("uploads") },
		"part":     func(r *http.Request) bool { return r.URL.Query().Has("partNumber") },
		"complete": func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") },
	}
	for fault, f := range faults {
		for step, match := range steps {
			t.Run(step+" "+fault, func(t *testing.T) {
				s, c := start(t)
				f.Match = match
				s.Fail(f)
				u, err := c.Begin(t.Context(), "k")
				require.NoError(t, err)
				require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("mine"))))
				_, err = u.Complete(t.Context(), ifAbsent)
				require.NoError(t, err)
				require.Zero(t, s.Pending())
				text, _, err := get(c, "k", 0, -1, "")
				require.NoError(t, err)
				require.Equal(t, "mine", text)
			})
		}
	}
	s, c := start(t)
	u, err := c.Begin(t.Context(), "k")
	require.NoError(t, err)
	require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("mine"))))
	s.Fail(objectstest.Fault{Method: http.MethodPost, Times: 1000})
	_, err = u.Complete(t.Context(), ifAbsent)
	require.ErrorIs(t, err, objects.ErrUnknown)
}

// A body that breaks off goes on where it broke, and only with the same version.
func TestGet_Resumes(t *testing.T) {
	s, c := start(t)
	whole := bytes.Repeat([]byte("0123456789"), 100_000)
	made := put(t, c, "k", string(whole))
	isGet := func(r *http.Request) bool { return r.Method == http.MethodGet }
	for _, x := range []struct{ off, n int64 }{{0, -1}, {0, 1_000_000}, {7, 500_000}, {999_000, -1}} {
		s.Fail(objectstest.Fault{Match: isGet, Apply: true, Body: 300, Times: 3}, objectstest.Fault{Match: isGet, Status: 503, Code: "SlowDown"})
		text, info, err := get(c, "k", x.off, x.n, "")
		require.NoError(t, err)
		want := whole[x.off:]
		if x.n >= 0 {
			want = want[:x.n]
		}
		require.True(t, string(want) == text, "%+v: %d bytes", x, len(text))
		require.Equal(t, made.ETag, info.ETag)
		require.Zero(t, s.Pending())
	}
	s.Fail(objectstest.Fault{Match: isGet, Apply: true, Body: 300, Times: 100})
	_, _, err := get(c, "k", 0, -1, "")
	require.ErrorContains(t, err, "broke off")

	s, c = start(t)
	put(t, c, "k", string(whole))
	s.Fail(objectstest.Fault{Match: isGet, Apply: true, Body: 300}, objectstest.Fault{Match: func(r *http.Request) bool {
		if isGet(r) && r.Header.Get("Range") != "" {
			put(t, s.Client(t), "k", "another")
		}
		return false
	}})
	_, _, err = get(c, "k", 0, -1, "")
	require.ErrorIs(t, err, objects.ErrChanged)
}

// Every class of error has its sentinel, names what was asked for and what to do, and is asked again only where that helps.
func TestErrors(t *testing.T) {
	for _, x := range []struct {
		f    objectstest.Fault
		is   error
		say  string
		once bool
	}{
		{objectstest.Fault{Status: 403, Code: "AccessDenied"}, objects.ErrDenied, "lack the permission", true},
		{objectstest.Fault{Status: 403, Code: "InvalidAccessKeyId"}, objects.ErrDenied, "s3.access-key-id", true},
		{objectstest.Fault{Status: 403, Code: "SignatureDoesNotMatch"}, objects.ErrDenied, "s3.secret-access-key", true},
		{objectstest.Fault{Status: 404, Code: "NoSuchBucket"}, objects.ErrNoBucket, "create the bucket", true},
		{objectstest.Fault{Status: 301, Code: "PermanentRedirect", Region: "eu-west-1"}, objects.ErrRegion, "set s3.region to eu-west-1", true},
		{objectstest.Fault{Status: 400, Code: "AuthorizationHeaderMalformed", Region: "eu-west-1"}, objects.ErrRegion, "eu-west-1", true},
		{objectstest.Fault{Status: 400, Code: "ExpiredToken"}, objects.ErrExpired, "", false},
		{objectstest.Fault{Status: 403, Code: "RequestTimeTooSkewed"}, objects.ErrSkew, "clock", false},
		{objectstest.Fault{Status: 503, Code: "SlowDown"}, objects.ErrBusy, "SlowDown", false},
		{objectstest.Fault{Status: 503}, objects.ErrBusy, "busy", false},
		{objectstest.Fault{Status: 500, Code: "InternalError"}, nil, "500", false},
		{objectstest.Fault{Status: 400, Code: "InvalidArgument"}, nil, "InvalidArgument", true},
		{objectstest.Fault{Status: 418}, nil, "418", true},
		{objectstest.Fault{}, nil, "EOF", false},
	} {
		s, c := start(t)
		x.f.Times = 1000
		s.Fail(x.f)
		for op, err := range map[string]error{
			"get": second(get(c, "dir/k", 0, -1, "")), "list": c.List(t.Context(), "dir/k", "", func(objects.Info) error { return nil }),
			"put": err(c.Put(t.Context(), "dir/k", objects.Bytes(nil), objects.PutOptions{})), "begin upload": err(c.Begin(t.Context(), "dir/k")),
		} {
			e := new(objects.Error)
			require.ErrorAs(t, err, &e, "%+v", x.f)
			if x.is != nil {
				require.ErrorIs(t, err, x.is)
			}
			require.ErrorContains(t, err, x.say, op)
			require.True(t, strings.HasPrefix(err.Error(), op+" s3://lake/dir/k"), err.Error())
			assert.Equal(t, x.f.Status, e.Status)
			if x.f.Status != 0 && x.f.Code != "" {
				assert.Equal(t, "request-7", e.RequestID)
			}
			assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), "canary")
			assert.NotContains(t, err.Error(), "?")
		}
		if x.once {
			require.Len(t, s.Log(), 4, "%+v", x.f)
		}
	}
}

func second(_ string, _ objects.Info, err error) error { return err }

func err[T any](_ T, err error) error { return err }

func TestRetryAfter_IsHonoured(t *testing.T) {
	s := objectstest.Start(t)
	c := s.Client(t)
	waits := objects.Waits(c)
	s.Fail(objectstest.Fault{Status: 503, Code: "SlowDown", Retry: 7}, objectstest.Fault{Status: 503, Code: "SlowDown"})
	put(t, c, "k", "x")
	require.Equal(t, []time.Duration{7 * time.Second, 0}, *waits)
}

// Credentials that the store calls expired are asked for once more, and not taken from a cache.
func TestExpired_IsRenewedOnce(t *testing.T) {
	s := objectstest.Start(t)
	var asked []bool
	c, err := objects.NewS3(s.Props(), objectstest.Bucket, func(ctx context.Context) (objects.Credentials, error) {
		asked = append(asked, objects.Renew(ctx))
		return objects.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
	})
	require.NoError(t, err)
	objects.Waits(c)
	s.Fail(objectstest.Fault{Status: 400, Code: "ExpiredToken"})
	_, err = c.Put(t.Context(), "k", objects.Bytes(nil), ifAbsent)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, asked)
	asked = nil
	s.Fail(objectstest.Fault{Status: 400})
	_, err = c.Head(t.Context(), "k")
	require.NoError(t, err, "an answer to HEAD does not say why")
	require.Equal(t, []bool{false, true}, asked)
	asked = nil
	s.Fail(objectstest.Fault{Status: 400, Code: "ExpiredToken", Times: 100})
	_, err = c.Put(t.Context(), "k", objects.Bytes(nil), objects.PutOptions{})
	require.ErrorIs(t, err, objects.ErrExpired)
	require.Equal(t, []bool{false, true}, asked)
}

func TestSource_Fails(t *testing.T) {
	s := objectstest.Start(t)
	for _, x := range []struct {
		source objects.Source
		want   string
	}{
		{func(context.Context) (objects.Credentials, error) {
			return objects.Credentials{}, errors.New("no role")
		}, "no role"},
		{func(context.Context) (objects.Credentials, error) { return objects.Credentials{}, nil }, "there are none"},
	} {
		c, err := objects.NewS3(s.Props(), objectstest.Bucket, x.source)
		require.NoError(t, err)
		_, err = c.Head(t.Context(), "k")
		require.ErrorContains(t, err, x.want)
		require.ErrorContains(t, err, "credentials")
		_, err = c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Hour})
		require.Error(t, err)
	}
	require.Empty(t, s.Log(), "nothing was sent")
}

// A clock that is wrong by an hour is learnt from the store's answer.
func TestSkew_IsCorrected(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		s, c := start(t)
		s.Ahead(ahead)
		_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("x")), ifAbsent)
		require.NoError(t, err)
		require.Len(t, s.Log(), 2)
		_, err = c.Put(t.Context(), "l", objects.Bytes([]byte("x")), ifAbsent)
		require.NoError(t, err)
		require.Len(t, s.Log(), 1, "the next one knows")
		signed, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Hour})
		require.NoError(t, err)
		_, date, _ := strings.Cut(signed.URL, "X-Amz-Date=")
		at, err := time.Parse("20060102T150405Z", date[:16])
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(ahead), at, time.Minute)
		require.WithinDuration(t, time.Now().Add(time.Hour), signed.Until, time.Minute, "by this machine's clock")
	}
}

// An endpoint where nothing answers is named, with what to do.
func TestEndpoint_Wrong(t *testing.T) {
	const address = "127.0.0.1:1" // where nobody listens
	for endpoint, want := range map[string]string{"http://" + address: "connection refused", "http://nowhere.invalid": "nowhere.invalid"} {
		c, err := objects.NewS3(objects.Props{objects.Endpoint: endpoint}, "b", objects.Static(objects.Props{objects.AccessKeyID: "k", objects.SecretKey: "s"}))
		require.NoError(t, err)
		objects.Waits(c)
		_, err = c.Put(t.Context(), "k", objects.Bytes(nil), ifAbsent)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, objects.Endpoint)
		require.NotErrorIs(t, err, objects.ErrUnknown, "nothing was sent")
	}
}

func TestProps_Refused(t *testing.T) {
	for want, p := range map[string]objects.Props{
		"s3.region is missing": {}, "s3.endpoint: want": {objects.Endpoint: "host:9000"}, "without a user": {objects.Endpoint: "https://u:canary@h"}, "without a user and a query": {objects.Endpoint: "https://h?canary"},
		"want true or false": {objects.Endpoint: "https://h", objects.PathStyle: "maybe"},
	} {
		_, err := objects.NewS3(p, "b", nil)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
	_, err := objects.NewS3(objects.Props{objects.Region: "eu-west-1"}, "", nil)
	require.Error(t, err)
}

func TestSecrets_AreNotPrinted(t *testing.T) {
	k := objects.Credentials{AccessKeyID: "canary", SecretAccessKey: "canary", SessionToken: "canary"}
	s := objects.Signed{Method: "GET", URL: "https://h/k?X-Amz-Signature=canary", Header: http.Header{"X": {"canary"}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(verb, k), "canary", verb)
		require.NotContains(t, fmt.Sprintf(verb, s), "canary", verb)
		require.NotContains(t, fmt.Sprintf(verb, &s), "canary", verb)
		require.NotContains(t, fmt.Sprintf(verb, []any{k, s}), "canary", verb)
	}
	require.Equal(t, `Get "http://h/k refused`, objects.WithoutQuery(`Get "http://h/k?X-Amz-Signature=canary": refused`))
	require.False(t, slices.Contains(strings.Fields(objects.WithoutQuery("https://h/k?canary")), "canary"))
}
