// Package restfixture starts Iceberg's own REST adapter (Java, with a catalog in SQLite) for tests. `make servers` fetches its jars.
package restfixture

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-io/signet/test/harness"
)

// Required, when set in the environment, turns skipped tests of servers into failed ones.
const Required = "SIGNET_REQUIRE_SERVERS"

// Server is a running adapter.
type Server struct {
	URL       string
	warehouse string
	http      http.Client
	catalogs  atomic.Int64
}

// Catalog is another catalog of the same server, which holds nothing yet, with its warehouse.
func (s *Server) Catalog() (url, warehouse string) {
	name := fmt.Sprintf("/c%d", s.catalogs.Add(1))
	return s.URL + name, s.warehouse + name
}

// Start starts one with its tables below warehouse, and stops it when the test ends. Settings are name=value: oauth=id:secret wants client credentials,
// others are properties of the catalog. Without Java or the jars the test is skipped.
func Start(t testing.TB, warehouse string, settings ...string) *Server {
	t.Helper()
	dir := filepath.Join(harness.Root(), "test/servers/restfixture")
	lib := filepath.Join(harness.Root(), ".cache/rest-lib")
	java, err := exec.LookPath("java")
	if _, gone := os.Stat(filepath.Join(lib, "complete")); gone != nil || err != nil {
		missing(t, "Iceberg's REST adapter needs Java 17 and the jars of `make servers`")
	}
	args := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(lib, "*")}
	args = append(args, filepath.Join(dir, "RestFixture.java"), "0", warehouse, filepath.Join(t.TempDir(), "catalog.db"))
	cmd := exec.Command(java, append(args, settings...)...)
	log, err := os.Create(filepath.Join(t.TempDir(), "adapter.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = harness.Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the adapter said: %.4000s", text)
		}
		log.Close()
	})
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- url
			}
		}
	}()
	select {
	case url, ok := <-ready:
		if ok {
			return &Server{URL: url, warehouse: warehouse}
		}
	case <-time.After(60 * time.Second):
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("the adapter did not start: %.4000s", text)
	return nil
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Required) != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Fault lets the next n commits go wrong: lost (applied, and answered 500), gateway (applied, and answered 504), drop (applied, and the connection is cut),
// busy (answered 503) or conflict (answered 409).
func (s *Server) Fault(t testing.TB, mode string, n int) {
	t.Helper()
	res, err := s.http.Post(fmt.Sprintf("%s/_fault?mode=%s&n=%d", s.URL, mode, n), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Fatalf("fault %s: status %d", mode, res.StatusCode)
	}
}
