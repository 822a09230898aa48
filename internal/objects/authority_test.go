package objects_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
)

const authorityURL = "SIGNET_TEST_AUTHORITY"

// A store whose certificate an authority of one's own has signed is trusted by SSL_CERT_FILE, and by nothing else. Go reads the variable once, so that this is a process of its own.
func TestAuthority(t *testing.T) {
	if url := os.Getenv(authorityURL); url != "" {
		props := objects.Props{objects.Endpoint: url, objects.AccessKeyID: "key", objects.SecretKey: "secret"}
		c, err := objects.NewS3(props, "lake", objects.Static(props))
		require.NoError(t, err)
		_, err = c.Head(t.Context(), "f")
		require.NoError(t, err)
		return
	}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", "Tue, 01 Dec 2026 00:00:00 GMT")
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	run := func(env ...string) (string, error) {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAuthority$")
		cmd.Env = append(append(os.Environ(), authorityURL+"="+srv.URL), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("SSL_CERT_FILE=" + file)
	require.NoError(t, err, out)
	out, err = run("SSL_CERT_FILE=" + filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
	require.Contains(t, out, "certificate")
}
