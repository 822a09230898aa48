// Package weed starts SeaweedFS for tests: an S3 server with STS and session policies, under the Apache licence, that needs no network. `make servers` builds it.
package weed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Server is one that runs until the test ends.
type Server struct {
	Endpoint  string // of S3 and STS
	REST      string // of its Iceberg REST catalog, whose tables are in the bucket Warehouse
	AccessKey string
	SecretKey string
	RoleARN   string // may do everything; sessions of it are narrowed by their policies
	Log       string // file
}

// Warehouse is the bucket of the REST catalog.
const Warehouse = "warehouse"

// Binary is where `make servers` puts SeaweedFS; "" if it did not.
func Binary() string {
	if p := os.Getenv("SIGNET_WEED"); p != "" {
		return p
	}
	_, here, _, _ := runtime.Caller(0)
	p := filepath.Join(filepath.Dir(here), "../../../.cache/bin/weed")
	if _, err := os.Stat(p); err != nil {
		return ""
	}
	return p
}

// Start starts SeaweedFS with an empty store, and with more warehouses of its REST catalog, if some are named. Where it was not built the test is skipped, unless
// SIGNET_REQUIRE_SERVERS is set.
func Start(t testing.TB, warehouses ...string) *Server {
	t.Helper()
	bin := Binary()
	if bin == "" {
		if os.Getenv("SIGNET_REQUIRE_SERVERS") != "" {
			t.Fatal("SeaweedFS is not there; make servers builds it")
		}
		t.Skip("SeaweedFS is not there; make servers builds it")
	}
	dir, err := os.MkdirTemp("", "weed") //nolint:usetesting // its removal must not race with the server's last writes
	require.NoError(t, err)
	s := &Server{AccessKey: "admin", SecretKey: "adminadmin", RoleARN: "arn:aws:iam::role/Executor", Log: filepath.Join(dir, "log")}
	iam := filepath.Join(dir, "iam.json")
	writeJSON(t, iam, s.identities())
	var args []string
	port := func(flag string) int {
		p := harness.FreePort(t)
		args = append(args, "-"+flag+"="+strconv.Itoa(p))
		return p
	}
	s3, rest := port("s3.port"), port("s3.port.iceberg")
	for _, flag := range []string{"s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"} {
		port(flag)
	}
	s.Endpoint, s.REST = fmt.Sprintf("http://127.0.0.1:%d", s3), fmt.Sprintf("http://127.0.0.1:%d", rest)
	args = append([]string{"mini", "-dir=" + filepath.Join(dir, "data"), "-ip=127.0.0.1", "-ip.bind=127.0.0.1"}, args...)
	args = append(args, "-s3.port.lance=0", "-admin.ui=false", "-webdav=false", "-s3.config="+iam, "-s3.iam.config="+iam, "-s3.iceberg.credentialRole="+s.RoleARN, "-tableBucket="+strings.Join(append([]string{Warehouse}, warehouses...), ","))
	log, err := os.Create(s.Log)
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	require.NoError(t, harness.Start(cmd))
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed in the end
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = os.RemoveAll(dir)
	})
	s.await(t, ended, append([]string{Warehouse}, warehouses...))
	return s
}

func (s *Server) identities() any {
	type m = map[string]any
	return m{
		"identities": []m{{"name": "admin", "credentials": []m{{"accessKey": s.AccessKey, "secretKey": s.SecretKey}}, "actions": []string{"Admin", "Read", "Write", "List", "Tagging"}}},
		"sts":        m{"tokenDuration": "1h", "maxSessionLength": "12h", "issuer": "seaweedfs-sts", "signingKey": "dGVzdC1zaWduaW5nLWtleS0zMi1jaGFycy1sb25nISE="},
		"policy":     m{"defaultEffect": "Deny", "storeType": "memory"},
		"policies":   []m{{"name": "All", "document": m{"Version": "2012-10-17", "Statement": []m{{"Effect": "Allow", "Action": []string{"s3:*", "s3tables:*"}, "Resource": []string{"*"}}}}}},
		"roles": []m{{"roleName": "Executor", "roleArn": s.RoleARN, "attachedPolicies": []string{"All"}, "trustPolicy": m{"Version": "2012-10-17", "Statement": []m{
			{"Effect": "Allow", "Principal": "*", "Action": []string{"sts:AssumeRole"}},
			{"Effect": "Allow", "Principal": m{"Federated": "iceberg-catalog"}, "Action": []string{"sts:AssumeRoleWithCredentials"}},
		}}}},
	}
}

func (s *Server) await(t testing.TB, ended <-chan struct{}, warehouses []string) {
	t.Helper()
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(time.Minute); ; {
		select {
		case <-ended:
			text, _ := os.ReadFile(s.Log)
			t.Fatalf("SeaweedFS ended:\n%s", text[max(0, len(text)-4000):])
		default:
		}
		if s.answers(client, s.Endpoint+"/") && s.serves(client, warehouses) {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(s.Log)
			t.Fatalf("SeaweedFS does not answer:\n%s", text[max(0, len(text)-4000):])
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// serves says whether the warehouses are there, which are made one after the other when the server runs already.
func (s *Server) serves(client *http.Client, warehouses []string) bool {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {s.AccessKey}, "client_secret": {s.SecretKey}}
	r, err := client.PostForm(s.REST+"/v1/oauth/tokens", form)
	if err != nil {
		return false
	}
	defer r.Body.Close()
	var token struct {
		Text string `json:"access_token"`
	}
	if json.NewDecoder(r.Body).Decode(&token) != nil {
		return false
	}
	for _, w := range warehouses {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.REST+"/v1/"+w+"/namespaces", nil)
		if err != nil {
			return false
		}
		req.Header.Set("Authorization", "Bearer "+token.Text)
		r, err := client.Do(req)
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return false
		}
	}
	return true
}

func (s *Server) answers(client *http.Client, at string) bool {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, at, nil)
	if err != nil {
		return false
	}
	r, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return true
}

func writeJSON(t testing.TB, path string, v any) {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
}
