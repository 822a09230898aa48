package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Places and properties of stores besides S3.
func TestLoad_Clouds(t *testing.T) {
	const at = "catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: '"
	for text, want := range map[string][]string{
		at + "gs://B/w'}}":                                                         {"catalogs.lake.warehouse", "gs://B/w", "3 to 222"},
		at + "gs://u:canary@b/w'}}":                                                {"catalogs.lake.warehouse", "keys under secret"},
		at + "abfss://B@acct/w'}}":                                                 {"catalogs.lake.warehouse", "abfss://B@acct/w", "a container of 3 to 63"},
		at + "wasb://c:canary@acct/w'}}":                                           {"catalogs.lake.warehouse", "keys are written under secret"},
		at + "abfss://abc@acct/a//b'}}":                                            {"catalogs.lake.warehouse", "no empty segment"},
		at + "abfss://abc@acct/a/../b'}}":                                          {"catalogs.lake.warehouse", "no . and .."},
		at + "gs://bucket', properties: {adls.account-key: canary}}}":              {"catalogs.lake.properties.adls.account-key", "write it under secret"},
		at + "gs://bucket', properties: {gcs.jsonkey: canary}}}":                   {"catalogs.lake.properties.gcs.jsonkey", "write it under secret"},
		at + "gs://bucket', properties: {gcs.oauth2.token-expires-at: soon}}}":     {"catalogs.lake.properties.gcs.oauth2.token-expires-at", "milliseconds"},
		at + "gs://bucket', properties: {gcs.service.host: 'http://u:canary@h'}}}": {"catalogs.lake.properties.gcs.service.host", "must not hold a user"},
	} {
		_, err := Load(write(t, text), nil, nil)
		require.Error(t, err, text)
		for _, w := range want {
			assert.Contains(t, err.Error(), w)
		}
		assert.NotContains(t, err.Error(), "canary")
	}
	for given, want := range map[string]string{
		"gs://my_bucket/a/": "gs://my_bucket/a", "abfss://abc@acct.dfs.core.windows.net": "abfss://abc@acct.dfs.core.windows.net",
		"wasbs://abc@acct.blob.core.windows.net/a b/": "wasbs://abc@acct.blob.core.windows.net/a b", "abfs://abc/a": "abfs://abc/a",
	} {
		c, err := Load(write(t, at+given+"'}}"), nil, nil)
		require.NoError(t, err)
		assert.Equal(t, want, c.Catalogs["lake"].Warehouse)
	}
}
