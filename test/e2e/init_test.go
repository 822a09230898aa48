package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// printed are the commands that `signet init` printed, by what they start.
func printed(t *testing.T, out string) map[string]string {
	t.Helper()
	commands := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(Scheduler|Executor|Client):\n  (signet .*)$`).FindAllStringSubmatch(out, -1) {
		commands[m[1]] = m[2]
	}
	require.Len(t, commands, 3, out)
	return commands
}

// shell starts a command line as a user types it, with signet in the PATH.
func shell(t *testing.T, line string) (*exec.Cmd, *syncBuffer) {
	t.Helper()
	var out syncBuffer
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Env = append(os.Environ(), "PATH="+harness.Bin+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, harness.Start(cmd))
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return cmd, &out
}

// typed runs a command line to its end.
func typed(line string) (string, error) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+harness.Bin+":"+os.Getenv("PATH"))
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// What `signet init` prints starts a cluster in which everybody shows a certificate and a token; who lacks one of them is not served.
func TestInit_PrintedCommandsMakeACluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a cluster")
	r := harness.RunCommand(t, "", nil, "init", dir, "--name", "prod-1", "--port", fmt.Sprint(harness.FreePort(t)))
	require.Equal(t, 0, r.Code, r.Err)
	commands := printed(t, r.Out)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		st, err := d.Info()
		require.NoError(t, err)
		require.Zero(t, st.Mode().Perm()&0o077, path)
		return nil
	}))

	_, scheduler := shell(t, commands["Scheduler"])
	harness.Eventually(t, "the scheduler listens", func() bool { return strings.Contains(scheduler.String(), "listening on") })
	_, executor := shell(t, commands["Executor"])
	harness.Eventually(t, "the executor joins", func() bool { return strings.Contains(executor.String(), "registered") })

	client := commands["Client"]
	require.True(t, strings.HasSuffix(client, ` "SHOW CATALOGS"`))
	client = strings.TrimSuffix(client, ` "SHOW CATALOGS"`)
	out, err := typed(commands["Client"])
	require.NoError(t, err, out)
	require.Contains(t, out, "lake")
	out, err = typed(client + ` -q --output csv "CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t AS SELECT 1 AS a; INSERT INTO lake.demo.t VALUES (2); SELECT sum(a) AS total FROM lake.demo.t"`)
	require.NoError(t, err, out)
	require.Contains(t, out, "total\r\n3\r\n")
	for _, secret := range []string{"tls/ca.key", "tls/client.key", "tokens/admin"} {
		out, err = typed(client + ` "SELECT * FROM read_csv('` + strings.ReplaceAll(filepath.Join(dir, secret), "'", `'\'''\''`) + `')"`)
		require.Error(t, err, out)
	}

	without := func(line string, flags ...string) string {
		for _, f := range flags {
			line = regexp.MustCompile(` --`+f+` ('([^']|'\\'')*'\S*|\S+)`).ReplaceAllString(line, "")
		}
		return line
	}
	bare := without(client, "tls-cert", "tls-key")
	require.NotEqual(t, client, bare)
	out, err = typed(bare + ` --retry-for 0s "SELECT 1"`)
	require.Error(t, err)
	require.Contains(t, out, "scheduler unreachable", "in TLS 1.3 the server refuses after the handshake: the client may see that, or only the end of the connection")
	out, err = typed(without(client, "token-file") + ` "SELECT 1"`)
	require.Error(t, err)
	require.Contains(t, out, "--token-file")
	out, err = typed(without(client, "tls-key") + ` "SELECT 1"`)
	require.Error(t, err)
	require.Contains(t, out, "go together")

	for _, line := range []string{without(commands["Executor"], "token-file"), without(commands["Executor"], "tls-cert", "tls-key")} {
		require.NotEqual(t, commands["Executor"], line)
		_, log := shell(t, strings.Replace(line, "/scratch'", "/scratch-2'", 1))
		harness.Eventually(t, "the executor is refused", func() bool {
			return strings.Contains(log.String(), "join token") || strings.Contains(log.String(), "certificate required")
		})
		require.NotContains(t, log.String(), "registered")
	}
	out, err = typed(client + ` -q --output csv "SELECT 1 AS one"`)
	require.NoError(t, err, out)
}

func TestInit_RefusesWhatItCannotDo(t *testing.T) {
	full := t.TempDir()
	kept := filepath.Join(full, "ca.key")
	require.NoError(t, os.WriteFile(kept, []byte("an older one"), 0o600))
	missing := filepath.Join(t.TempDir(), "new")
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{full}, "is not empty"},
		{[]string{kept}, "ca.key"},
		{[]string{missing, "--days", "0"}, "--days 0"},
		{[]string{missing, "--days", "99999"}, "--days 99999"},
		{[]string{missing, "--host", "a:7070"}, "without a port"},
		{[]string{missing, "--host", "ok,"}, "host"},
		{[]string{missing, "--name", "Not A Name"}, "cluster"},
		{[]string{missing, "--name", strings.Repeat("a", 80)}, "name"},
		{[]string{missing, "--port", "70000"}, "--port"},
		{[]string{}, "arg"},
	} {
		r := harness.RunCommand(t, "", nil, append([]string{"init"}, tc.args...)...)
		require.Equal(t, 2, r.Code, "%v: %s", tc.args, r.Out)
		require.Contains(t, r.Err, tc.says, "%v", tc.args)
		require.NoFileExists(t, missing)
		require.NoDirExists(t, missing, "%v leaves nothing", tc.args)
	}
	b, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, "an older one", string(b))
}

// A certificate that auth.certificates lists is a principal without a token, on every listener; executors that the scheduler itself starts show theirs.
func TestInit_CertificatesArePrincipals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	r := harness.RunCommand(t, "", nil, "init", dir, "--port", fmt.Sprint(harness.FreePort(t)))
	require.Equal(t, 0, r.Code, r.Err)
	commands := printed(t, r.Out)
	path := filepath.Join(dir, "signet.yaml")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	text := strings.Replace(string(b), "executors: {local: 0}", "executors: {local: 1, tls_cert: tls/executor.pem, tls_key: tls/executor.key}", 1)
	text = strings.Replace(text, "  tokens: ", "  certificates:\n    - {cn: admin, principal: robot}\n  tokens: ", 1)
	text = strings.Replace(text, "    type: sql\n", "    type: sql\n    permissions: [{principals: [robot], allow: [read]}]\n", 1)
	require.Contains(t, text, "cn: admin")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, scheduler := shell(t, commands["Scheduler"])
	harness.Eventually(t, "the scheduler listens", func() bool { return strings.Contains(scheduler.String(), "listening on") })

	client := strings.TrimSuffix(commands["Client"], ` "SHOW CATALOGS"`)
	bare := regexp.MustCompile(` --token-file \S+`).ReplaceAllString(client, "")
	require.NotEqual(t, client, bare)
	out, err := typed(bare + ` -q --output csv "SELECT 7 AS n"`) // on the executor that the scheduler has started
	require.NoError(t, err, out)
	require.Contains(t, out, "n\r\n7\r\n")
	out, err = typed(bare + ` "CREATE SCHEMA lake.demo"`)
	require.Error(t, err)
	require.Contains(t, out, "robot may not create schema lake.demo")
	out, err = typed(client + ` "SELECT 1"`)
	require.Error(t, err, "the certificate is one principal's, the token another's")
	require.Contains(t, out, "another principal's")
	executors := strings.NewReplacer("tls/client.pem", "tls/executor.pem", "tls/client.key", "tls/executor.key").Replace(bare)
	out, err = typed(executors + ` "SELECT 1"`)
	require.Error(t, err, "an executor's certificate is no client's")
	require.Contains(t, out, "client token")
}
