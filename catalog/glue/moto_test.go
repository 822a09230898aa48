package glue_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/test/harness"
)

// startMoto starts the server that SIGNET_TEST_MOTO names (`make test-glue` does) and returns its address. The test is skipped where it is not set.
func startMoto(t *testing.T) string {
	path := os.Getenv("SIGNET_TEST_MOTO")
	if path == "" {
		t.Skip("SIGNET_TEST_MOTO is not set; make test-glue runs this")
	}
	cmd := exec.Command(path, "-H", "127.0.0.1", "-p", "0")
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, harness.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ready := make(chan string, 1)
	go func() {
		running := regexp.MustCompile(`Running on (http://\S+)`)
		for lines := bufio.NewScanner(said); lines.Scan(); { // to the end, lest it wait for a reader
			if m := running.FindStringSubmatch(lines.Text()); m != nil && len(ready) == 0 {
				ready <- m[1]
			}
		}
	}()
	select {
	case url := <-ready:
		return url
	case <-time.After(2 * time.Minute):
		t.Fatal("moto did not start")
		return ""
	}
}

// moto's Glue is somebody else's reading of the service. It does not compare VersionId, which gluetest does.
func TestMoto_Conformance(t *testing.T) {
	url := startMoto(t)
	catalogtest.RunWith(t, glueQuirks, func(t *testing.T) catalog.Catalog {
		res, err := http.Post(url+"/moto-api/reset", "text/plain", nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
		return open(t, url, t.TempDir(), nil)
	})
}
