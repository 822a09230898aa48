package rest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
)

// What is taken of an answer, and for which place. The servers' quirks are in the names.
func TestParseGrant(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	keys := func(n string) string {
		return fmt.Sprintf(`"s3.access-key-id":"K%s","s3.secret-access-key":"canary-secret","s3.session-token":"canary-token"`, n)
	}
	const table = `"metadata":{"location":"s3://lake/wh/s/t","properties":{"write.data.path":"s3://lake/data/t"}}`
	for name, tc := range map[string]struct {
		answer, location string
		key, prefix      string // "": an error
		left             time.Duration
		failed           string
	}{
		"of the table's configuration": {
			answer: `{` + table + `,"config":{` + keys("1") + `}}`, location: "s3://lake/wh/s/t/data/x", key: "K1", prefix: "s3://lake/wh/s/t", left: unsaidLife,
		},
		"storage credentials count more": {
			answer:   `{` + table + `,"config":{` + keys("1") + `},"storage-credentials":[{"prefix":"s3://lake/wh/s/t/","config":{` + keys("2") + `}}]}`,
			location: "s3://lake/wh/s/t", key: "K2", prefix: "s3://lake/wh/s/t", left: unsaidLife,
		},
		"the longest prefix by segments, not by letters": {
			answer: `{"storage-credentials":[{"prefix":"s3://lake/wh/s","config":{` + keys("1") + `}},{"prefix":"s3://lake/wh/s/t/da","config":{` + keys("2") + `}},` +
				`{"prefix":"s3://lake/wh/s/t","config":{` + keys("3") + `}},{"prefix":"s3://lake/wh/s/t1","config":{` + keys("4") + `}}]}`,
			location: "s3://lake/wh/s/t/data", key: "K3", prefix: "s3://lake/wh/s/t", left: unsaidLife,
		},
		"another table's are none": {
			answer: `{"storage-credentials":[{"prefix":"s3://lake/wh/s/t1","config":{` + keys("4") + `}}]}`, location: "s3://lake/wh/s/t/data", failed: "gives no credentials",
		},
		"a place of the table's elsewhere": {
			answer: `{` + table + `,"config":{` + keys("1") + `}}`, location: "s3://lake/data/t/job", key: "K1", prefix: "s3://lake/data/t", left: unsaidLife,
		},
		"a place that is not the table's": {
			answer: `{` + table + `,"config":{` + keys("1") + `}}`, location: "s3://lake/wh/s/u", failed: "gives no credentials",
		},
		"of all of S3": {
			answer: `{"storage-credentials":[{"prefix":"s3","config":{` + keys("1") + `}}]}`, location: "s3://lake/wh/s/t", key: "K1", prefix: "s3://lake/wh/s/t", left: unsaidLife,
		},
		"other spellings of a scheme": {
			answer: `{"storage-credentials":[{"prefix":"s3a://lake/wh","config":{` + keys("1") + `}}]}`, location: "s3://lake/wh/s/t", key: "K1", prefix: "s3a://lake/wh", left: unsaidLife,
		},
		"with an end": {
			answer:   `{` + table + `,"config":{` + keys("1") + `,"s3.session-token-expires-at-ms":"1800000060000"}}`,
			location: "s3://lake/wh/s/t", key: "K1", prefix: "s3://lake/wh/s/t", left: time.Minute,
		},
		"with an end that is over": {
			answer: `{` + table + `,"config":{` + keys("1") + `,"s3.session-token-expires-at-ms":"1800000000000"}}`, location: "s3://lake/wh/s/t", failed: "run out already",
		},
		"with an end that is no time": {
			answer:   `{` + table + `,"config":{` + keys("1") + `,"s3.session-token-expires-at-ms":"soon"}}`,
			location: "s3://lake/wh/s/t", key: "K1", prefix: "s3://lake/wh/s/t", left: unsaidLife,
		},
		"half of a key": {
			answer: `{` + table + `,"config":{"s3.access-key-id":"K1"}}`, location: "s3://lake/wh/s/t", failed: "half of the credentials",
		},
		"none, but an offer to sign": {
			answer: `{` + table + `,"config":{"s3.remote-signing-enabled":"true","s3.signer.uri":"http://elsewhere"}}`, location: "s3://lake/wh/s/t", failed: "gives no credentials",
		},
		"null, numbers, lists":       {answer: `{"metadata":null,"config":{"s3.access-key-id":7,"s3.endpoint":null},"storage-credentials":null}`, location: "s3://lake/t", failed: "gives no credentials"},
		"no prefix":                  {answer: `{"storage-credentials":[{"config":{` + keys("1") + `}}]}`, location: "s3://lake/t", failed: "gives no credentials"},
		"a prefix with steps":        {answer: `{"storage-credentials":[{"prefix":"s3://lake/wh/../t","config":{` + keys("1") + `}}]}`, location: "s3://lake/t", failed: "gives no credentials"},
		"a prefix of another bucket": {answer: `{"storage-credentials":[{"prefix":"s3://lak","config":{` + keys("1") + `}}]}`, location: "s3://lake/t", failed: "gives no credentials"},
		"something else":             {answer: `<html>`, location: "s3://lake/t", failed: "no table"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := parseGrant([]byte(tc.answer), tc.location, now)
			if tc.failed != "" {
				require.ErrorContains(t, err, tc.failed)
				require.NotContains(t, err.Error(), "canary")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.key, v.keys.AccessKeyID)
			assert.Equal(t, "canary-secret", v.keys.SecretAccessKey)
			assert.Equal(t, tc.prefix, v.prefix)
			assert.Equal(t, tc.left, v.left)
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", v.keys, v.keys, v.keys), "canary")
		})
	}
}

// Of what a server says about a store, only its address is taken.
func TestParseGrant_TakesNothingElse(t *testing.T) {
	config := map[string]string{
		"s3.access-key-id": "K", "s3.secret-access-key": "s", "s3.region": "eu-1", "client.region": "eu-2", "s3.endpoint": "http://store", "s3.path-style-access": "true",
		"uri": "http://evil", "token": "t", "credential": "c", "oauth2-server-uri": "http://evil", "s3.signer.uri": "http://evil", "s3.signer.endpoint": "x", "s3.remote-signing-enabled": "true",
		"header.X-A": "b", "io-impl": "x", "s3.role-arn": "arn:aws:iam::1:role/x", "s3.proxy-uri": "http://evil", "rest.sigv4-enabled": "true",
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]string{"location": "s3://lake/t"}, "config": config})
	require.NoError(t, err)
	v, err := parseGrant(body, "s3://lake/t", time.Time{})
	require.NoError(t, err)
	require.Equal(t, objects.Props{"s3.region": "eu-1", "client.region": "eu-2", "s3.endpoint": "http://store", "s3.path-style-access": "true"}, v.props)
}

func TestGrants_AreBounded(t *testing.T) {
	var g grants
	for i := range maxGrants + 10 {
		g.put(&grant{id: fmt.Sprint(i % 100), prefix: fmt.Sprintf("s3://lake/%d", i)})
	}
	n := 0
	for _, all := range g.byID {
		n += len(all)
	}
	require.Equal(t, maxGrants, n)
	require.Equal(t, maxGrants, g.n)
	last := maxGrants + 9
	require.NotNil(t, g.find(fmt.Sprint(last%100), fmt.Sprintf("s3://lake/%d/data", last)), "the newest stay")
	require.Nil(t, g.find("0", "s3://lake/0"), "the oldest went")
	require.Nil(t, g.find("1", fmt.Sprintf("s3://lake/%d", last)), "another table's")
}

func TestPathPrefix(t *testing.T) {
	for in, want := range map[string]string{"": "", "warehouse": "warehouse", "main%7Cwarehouse": "main%7Cwarehouse", "a/b c": "a/b%20c", "main|wh": "main%7Cwh", "a%2Fb": "a%2Fb", "ä": "%C3%A4"} {
		got, err := pathPrefix(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"..", "a/../b", "%2e%2e", "a//b", "%", "%zz", "./a"} {
		_, err := pathPrefix(bad)
		require.Error(t, err, bad)
	}
}
