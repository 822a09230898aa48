package summary

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	for key, want := range map[string]string{
		"ticket": "", "etl.run": "", "Ticket-7": "", "größe": "", "added": "", "operations": "", "kafka": "",
		"": "no name", "a b": "spaces", "a\x00b": "control", "a\xffb": "control", strings.Repeat("k", 129): "128 bytes",
		"operation": "reserved", "Operation": "reserved", "added-records": "reserved", "total-records": "reserved", "total-anything": "reserved",
		"deleted-data-files": "reserved", "removed-dvs": "reserved", "changed-partition-count": "reserved", "partitions.a=1": "reserved",
		"signet.user": "reserved", "signet.markers": "reserved", "SIGNET.x": "reserved", "engine-name": "reserved", "app-id": "reserved", "spark.app.id": "reserved",
		"wap.id": "reserved", "published-wap-id": "reserved", "source-snapshot-id": "reserved", "replace-partitions": "reserved", "manifests-created": "reserved",
		"flink.job-id": "reserved", "kafka.connect.offsets.x": "reserved", "iceberg-version": "reserved",
	} {
		err := Check(key, "v")
		if want == "" {
			require.NoError(t, err, "%q", key)
			continue
		}
		require.ErrorContains(t, err, want, "%q", key)
		if want == "reserved" {
			require.ErrorContains(t, err, key) // by its name
		}
	}
	require.NoError(t, Check("k", ""))
	require.NoError(t, Check("k", strings.Repeat("v", 4096)))
	require.ErrorContains(t, Check("k", strings.Repeat("v", 4097)), "4096 bytes")
	require.ErrorContains(t, Check("k", "a\nb"), "control")
}

func TestVet(t *testing.T) {
	unit := func(user, hash string, more ...string) map[string]string {
		u := map[string]string{User: user, QueryHash: hash}
		for i := 0; i < len(more); i += 2 {
			u[more[i]] = more[i+1]
		}
		return u
	}
	one := []map[string]string{unit("ann", "h1", "ticket", "7")}
	two := []map[string]string{unit("ann", "h1", "ticket", "7"), unit("bob", "h1", "ticket", "8", "empty", "")}
	for name, tc := range map[string]struct {
		have  map[string]string
		units []map[string]string
		want  string
	}{
		"of one job":                  {map[string]string{User: "ann", QueryHash: "h1", "ticket": "7", "operation": "append", "added-records": "1", "signet.markers": "m"}, one, ""},
		"of two: each value once":     {map[string]string{User: "ann,bob", QueryHash: "h1", "ticket": "7", "empty": ""}, two, ""},
		"of two: either's word":       {map[string]string{User: "ann,bob", QueryHash: "h1", "ticket": "8"}, two, ""},
		"nothing asked for":           {map[string]string{"operation": "append", "engine-name": "x"}, nil, ""},
		"another user":                {map[string]string{User: "eve", QueryHash: "h1", "ticket": "7"}, one, "summary signet.user is \"eve\": want \"ann\""},
		"no user":                     {map[string]string{QueryHash: "h1", "ticket": "7"}, one, "signet.user"},
		"one of two users":            {map[string]string{User: "ann", QueryHash: "h1", "ticket": "7"}, two, "signet.user"},
		"no hash":                     {map[string]string{User: "ann", "ticket": "7"}, one, "signet.query-hash"},
		"a property that was not set": {map[string]string{User: "ann", QueryHash: "h1", "ticket": "7", "x": "y"}, one, "\"x\" is \"y\", which no job has set"},
		"another value":               {map[string]string{User: "ann", QueryHash: "h1", "ticket": "9"}, one, "\"ticket\""},
		"a property is missing":       {map[string]string{User: "ann", QueryHash: "h1"}, one, "\"ticket\", which a job has set, is missing"},
		"one of ours that is not":     {map[string]string{User: "ann", QueryHash: "h1", "ticket": "7", "signet.x": "y"}, one, "\"signet.x\" is not allowed"},
		"a user where there is none":  {map[string]string{User: "ann"}, nil, "signet.user"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Vet(tc.have, tc.units)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}
