package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReceivers(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("Bearer 0123456789\n"), 0o600))
	load := func(text string) (*Config, error) {
		path := filepath.Join(dir, "signet.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return Load(path, nil, nil)
	}
	c, err := load("lineage: {file: events.jsonl, include_sql: true}\ncommit_reports: {url: 'https://h/v1/namespaces/{namespace}/tables/{table}/metrics', headers: {Authorization: {file: token}}, timeout: 3s, max_pending: 7}\n")
	require.NoError(t, err)
	require.Equal(t, Receiver{File: filepath.Join(dir, "events.jsonl")}, c.Lineage.Receiver())
	require.True(t, c.Lineage.IncludeSQL)
	require.Equal(t, 3*time.Second, c.CommitReports.Timeout)
	require.Equal(t, 7, c.CommitReports.MaxPending)
	require.Contains(t, c.SecretValues(), "Bearer 0123456789")
	require.Contains(t, c.OwnPaths(), filepath.Join(dir, "events.jsonl"), "no statement reads it")
	require.Contains(t, c.OwnPaths(), token)

	for text, want := range map[string]string{
		"lineage: {file: a, url: 'http://localhost/'}":                                                      "one of them",
		"lineage: {headers: {A: {env: X}}}":                                                                 "there is none",
		"lineage: {url: 'ftp://h/x'}":                                                                       "want http://",
		"lineage: {url: 'https://h/{table}'}":                                                               "want http://",
		"commit_reports: {url: 'https://h/{other}'}":                                                        "{namespace} and {table}",
		"lineage: {url: 'https://user:hunter22@h/'}":                                                        "holds credentials",
		"lineage: {url: 'http://example.org/', headers: {Authorization: {file: token}}}":                    "use https",
		"lineage: {url: 'https://h/', headers: {Authorization: {file: token}, authorization: {env: HOME}}}": "twice",
		"lineage: {url: 'https://h/', headers: {Authorization: 'Bearer x'}}":                                "never as text",
		"lineage: {file: a, max_pending: -1}":                                                               "1 to 1000000",
		"lineage: {fil: a}":                                                                                 "did you mean lineage.file?",
	} {
		_, err := load(text + "\n")
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "hunter22")
		if want != "did you mean lineage.file?" {
			require.ErrorContains(t, err, want, text)
		}
	}
	_, err = load("lineage: {url: 'http://127.0.0.1:5000/api/v1/lineage', headers: {Authorization: {file: token}}}\n")
	require.NoError(t, err, "nobody else can read that")
}
