package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSources_Remote(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, []byte("k"), 0o600))
	c, err := Load(write(t, "data_dir: "+dir+`
sources:
  remote:
  - prefix: s3a://raw/2026/
    properties: {s3: {endpoint: "http://127.0.0.1:1", region: eu-north-1}, s3.path-style-access: true}
    secret: {s3.access-key-id: {env: SOURCES_KEY}, s3.secret-access-key: {file: `+key+`}}
  - prefix: https://data.example.org/
catalogs:
  c: {type: sql, uri: "sqlite:///c.db", warehouse: "s3://lake/wh", data_paths: ["s3://more"], permissions: [{principals: [a], allow: [read]}]}
`), nil, nil)
	require.NoError(t, err)
	r := c.Sources.Remote
	require.Equal(t, "s3://raw/2026", r[0].Prefix)
	require.Equal(t, map[string]string{"s3.endpoint": "http://127.0.0.1:1", "s3.region": "eu-north-1", "s3.path-style-access": "true"}, r[0].Properties)
	require.False(t, r[0].IsWeb())
	require.True(t, r[1].IsWeb())
	require.Contains(t, c.OwnPaths(), key)
	require.Contains(t, c.SecretEnv(), "SOURCES_KEY")
	require.ErrorContains(t, c.CheckSecrets(), "sources.remote[0].secret.s3.access-key-id")
	require.Equal(t, []string{"s3://lake/wh", "s3://more"}, c.RestrictedPlaces())
	for text, want := range map[string]string{
		`{properties: {s3.region: x}}`:                                           "sources.remote[0].prefix: missing",
		`{prefix: /srv}`:                                                         "local directories are listed at sources.roots",
		`{prefix: "gs://b"}`:                                                     "want s3://bucket/prefix or https://host/path",
		`{prefix: "s3://B/x"}`:                                                   "with a bucket of 3 to 63",
		`{prefix: "s3://bucket/a/../b"}`:                                         "no . and ..",
		`{prefix: "s3://me:topsecret@bucket/b"}`:                                 "must not hold a user or password",
		`{prefix: "https://me:topsecret@host/b"}`:                                "without a user, a query",
		`{prefix: "https://host/b?sig=topsecret"}`:                               "without a user, a query",
		`{prefix: "https:///b"}`:                                                 "without a user, a query",
		`{prefix: "https://host/a//b"}`:                                          "no empty segment",
		`{prefix: "s3://bucket", properties: {s3.endpiont: x}}`:                  "did you mean s3.endpoint?",
		`{prefix: "s3://bucket", properties: {s3.endpoint: x}}`:                  "sources.remote[0].properties.s3.endpoint: want http://host:port",
		`{prefix: "s3://bucket", properties: {scope: x}}`:                        "unknown property",
		`{prefix: "s3://bucket", properties: {s3.secret-access-key: topsecret}}`: "is a secret; write it under secret",
		`{prefix: "s3://bucket", secret: {s3.secret-access-key: topsecret}}`:     "never as text",
		`{prefix: "s3://bucket", secret: {s3.secret-access-key: {env: X}}}`:      "belong together",
		`{prefix: "https://host", secret: {s3.access-key-id: {env: X}}}`:         "web servers are read without credentials",
		`{prefix: "https://host", properties: {s3.region: x}}`:                   "is for s3:// places",
		`{prefix: "s3://bucket", prefixes: x}`:                                   "unknown key",
		`{prefix: "s3://bucket"}, {prefix: "s3a://bucket/"}`:                     "is there already, as sources.remote[0]",
	} {
		_, err := Load(write(t, "data_dir: "+dir+"\nsources: {remote: ["+text+"]}\n"), nil, nil)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "topsecret", text)
	}
}
