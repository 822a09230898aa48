package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHTTP_IsOffUnlessConfigured(t *testing.T) {
	c, err := Load("", nil, nil)
	require.NoError(t, err)
	assert.Empty(t, c.HTTP.Listen)
	c, err = Load("", []string{"SIGNET_HTTP_LISTEN=127.0.0.1:7080", "SIGNET_LIMITS_MAX_EVENT_LOG_BYTES=1MiB"}, nil)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:7080", c.HTTP.Listen)
	assert.Equal(t, Bytes(1<<20), c.Limits.MaxEventLogBytes)
}

func TestHTTP_AddressesThatOthersReachNeedTLSAndTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"http: {listen: 'nowhere'}":               {"http.listen", "host:port"},
		"http: {listen: '0.0.0.0:7080'}":          {"http.listen", "tls.cert and tls.key, auth.tokens", "127.0.0.1"},
		"http: {listen: 'example.org:1'}":         {"http.listen", "others can reach"},
		"http: {lisen: 'x'}":                      {"http.lisen", "did you mean listen?"},
		"limits: {max_event_log_bytes: 0}":        {"limits.max_event_log_bytes"},
		"limits: {max_event_log_bytes: a little}": {"limits.max_event_log_bytes"},
	} {
		_, err := Load(write(t, text), nil, nil)
		require.Error(t, err, text)
		for _, w := range want {
			assert.Contains(t, err.Error(), w, text)
		}
	}
	dir := t.TempDir()
	for _, f := range []string{"cert.pem", "key.pem"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	path := filepath.Join(dir, "signet.yaml")
	text := "http: {listen: '0.0.0.0:7080'}\ntls: {cert: cert.pem, key: key.pem}\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := Load(path, nil, nil)
	require.ErrorContains(t, err, "auth.tokens")
	require.NoError(t, os.WriteFile(path, []byte(text+"auth: {tokens: [{principal: p, token: {env: T}}]}\n"), 0o600))
	_, err = Load(path, nil, nil)
	require.NoError(t, err, "executors do not connect here: no join token is asked for")
}
