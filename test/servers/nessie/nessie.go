// Package nessie starts Nessie's Iceberg REST catalog (Quarkus, with its store in memory) for tests. `make servers` fetches its jar. Its tables are in an S3 store.
package nessie

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/weed"
)

// Server is one that runs until the test ends.
type Server struct {
	URL       string // of its Iceberg REST catalogs, before /v1
	Warehouse string // its name there

	api      string
	branches atomic.Int64
}

// version of Nessie, which is the newest whose runnable jar is published.
const version = "0.99.0"

// Jar is where `make servers` puts Nessie.
func Jar() string {
	return filepath.Join(harness.Root(), ".cache/nessie/nessie-quarkus-"+version+"-runner.jar")
}

// java is one of version 21 or newer: JAVA21, or the newest of those that Linux distributions install. "": there is none.
func java() string {
	if p := os.Getenv("JAVA21"); p != "" {
		return p
	}
	for _, v := range []int{25, 24, 23, 22, 21} {
		if all, _ := filepath.Glob(fmt.Sprintf("/usr/lib/jvm/*%d*/bin/java", v)); len(all) > 0 {
			return all[0]
		}
	}
	return ""
}

// Start starts Nessie with its tables below s3://bucket/wh, with credentials for clients that it makes of the store's role. Where it cannot be started the test is skipped, unless
// SIGNET_REQUIRE_SERVERS is set.
func Start(t testing.TB, store *weed.Server, bucket string) *Server {
	t.Helper()
	bin := java()
	if _, err := os.Stat(Jar()); err != nil || bin == "" {
		const what = "Nessie is not there; make servers fetches it, and it needs Java 21 or newer (JAVA21)"
		if os.Getenv("SIGNET_REQUIRE_SERVERS") != "" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	port, management := harness.FreePort(t), harness.FreePort(t)
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d/iceberg", port), api: fmt.Sprintf("http://127.0.0.1:%d/api/v2", port), Warehouse: "warehouse"}
	args := []string{"-Xmx600m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	set := func(name, value string) { args = append(args, "-D"+name+"="+value) }
	set("quarkus.http.host", "127.0.0.1")
	set("quarkus.http.port", strconv.Itoa(port))
	set("quarkus.management.host", "127.0.0.1")
	set("quarkus.management.port", strconv.Itoa(management))
	set("quarkus.otel.sdk.disabled", "true")
	set("nessie.version.store.type", "IN_MEMORY")
	set("nessie.catalog.default-warehouse", s.Warehouse)
	set("nessie.catalog.warehouses."+s.Warehouse+".location", "s3://"+bucket+"/wh")
	const s3 = "nessie.catalog.service.s3.default-options."
	set(s3+"endpoint", store.Endpoint)
	set(s3+"region", "us-east-1")
	set(s3+"path-style-access", "true")
	set(s3+"auth-type", "STATIC")
	set(s3+"access-key", "urn:nessie-secret:quarkus:my.s3key")
	set(s3+"client-iam.enabled", "true")
	set(s3+"client-iam.assume-role", store.RoleARN)
	set(s3+"sts-endpoint", store.Endpoint)
	set("my.s3key.name", store.AccessKey)
	set("my.s3key.secret", store.SecretKey)
	log, err := os.Create(filepath.Join(t.TempDir(), "nessie.log"))
	require.NoError(t, err)
	cmd := exec.Command(bin, append(args, "-jar", Jar())...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), log, log
	require.NoError(t, harness.Start(cmd))
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed in the end
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("Nessie said: %s", text[max(0, len(text)-4000):])
		}
		log.Close()
	})
	harness.Eventually(t, "Nessie answers", func() bool {
		select {
		case <-ended:
			t.Fatal("Nessie ended") // with its log, at the end of the test
		default:
		}
		_, err := s.call(http.MethodGet, s.api+"/config", nil)
		return err == nil
	})
	return s
}

// noAncestor is the commit that every empty branch is at.
const noAncestor = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"

// Branch makes another branch, which is a catalog that holds nothing yet: the prefix BRANCH|WAREHOUSE leads to it.
func (s *Server) Branch(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("b%d", s.branches.Add(1))
	body, err := json.Marshal(map[string]string{"type": "BRANCH", "name": "main", "hash": noAncestor})
	require.NoError(t, err)
	_, err = s.call(http.MethodPost, s.api+"/trees?type=BRANCH&name="+name, body)
	require.NoError(t, err)
	return name
}

func (s *Server) call(method, url string, body []byte) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, url, r.Status, strings.TrimSpace(string(text)))
	}
	return string(text), err
}
