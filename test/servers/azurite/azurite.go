// Package azurite starts Azurite for tests: Microsoft's own server of Azure Blob Storage's protocol, under the MIT licence, that needs no network. `make test-azure` installs it.
package azurite

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// account is the only one of the server.
const account = "signet"

// Script is where `make test-azure` puts Azurite; "" if it did not.
func Script() string {
	_, here, _, _ := runtime.Caller(0)
	p, err := filepath.Abs(filepath.Join(filepath.Dir(here), "../../../.cache/azurite/node_modules/azurite/dist/src/blob/main.js"))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(p); err != nil {
		return ""
	}
	return p
}

// Start starts Azurite with an empty store, which lives until the test ends, and answers a connection string. Where it is not installed the test is skipped, unless
// SIGNET_REQUIRE_SERVERS is set.
func Start(t testing.TB) (connection string) {
	t.Helper()
	script := Script()
	node, err := exec.LookPath("node")
	if script == "" || err != nil {
		if os.Getenv("SIGNET_REQUIRE_SERVERS") != "" {
			t.Fatal("Azurite or Node.js is not there; make test-azure installs Azurite")
		}
		t.Skip("Azurite or Node.js is not there; make test-azure installs Azurite")
	}
	port := strconv.Itoa(harness.FreePort(t))
	key := base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for this test"))
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(node, script, "--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+account+":"+key)
	require.NoError(t, harness.Start(cmd))
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed in the end
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	address := net.JoinHostPort("127.0.0.1", port)
	await(t, address, ended, log.Name())
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=http://%s/%s", account, key, address, account)
}

// await waits until somebody listens, which the server tells nobody.
func await(t testing.TB, address string, ended <-chan struct{}, log string) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ended:
		case <-deadline:
		case <-tick.C:
			continue
		}
		text, _ := os.ReadFile(log)
		t.Fatalf("Azurite does not answer: %v\n%s", err, text[max(0, len(text)-4000):])
	}
}
