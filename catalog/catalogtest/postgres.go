package catalogtest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that looks whether the server is up
)

// PostgresPassword is the superuser's password of servers that StartPostgres starts.
const PostgresPassword = "canary-pg-71c2"

// StartPostgres starts a server of its own on a Unix socket and stops it when the test ends. It skips the test where there are no
// binaries. The URI holds no password; PostgresPassword is needed.
func StartPostgres(t *testing.T) (uri string) {
	t.Helper()
	initdb, server := findPostgres(t)
	cred := unprivileged(t)
	// Not t.TempDir: its name is too long for a socket, and the server's user could not enter it.
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	pw := filepath.Join(dir, "pw")
	if err := os.WriteFile(pw, []byte(PostgresPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	if cred != nil {
		for _, p := range []string{dir, pw} {
			if err := os.Chown(p, int(cred.Uid), int(cred.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		return cmd
	}
	if out, err := run(initdb, "-D", data, "-U", "postgres", "-E", "UTF8", "-A", "scram-sha-256", "--pwfile", pw, "-N").CombinedOutput(); err != nil {
		t.Skipf("initdb does not run here: %v\n%s", err, out)
	}
	var log bytes.Buffer
	cmd := run(server, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // fast shutdown
		select {
		case <-exited:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
	})
	uri = "postgresql://postgres@/postgres?host=" + dir
	if err := waitUp(uri, exited); err != nil {
		t.Fatalf("postgres did not come up: %v", err)
	}
	return uri
}

// findPostgres looks in PATH and where Debian and Homebrew put the server's binaries.
func findPostgres(t *testing.T) (initdb, server string) {
	t.Helper()
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	more, _ := filepath.Glob("/opt/homebrew/opt/postgresql@*/bin")
	for i := len(dirs) - 1; i >= 0; i-- {
		more = append(more, dirs[i])
	}
	for _, d := range more {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err == nil {
			return filepath.Join(d, "initdb"), filepath.Join(d, "postgres")
		}
	}
	initdb, err1 := exec.LookPath("initdb")
	server, err2 := exec.LookPath("postgres")
	if err := errors.Join(err1, err2); err != nil {
		t.Skip("PostgreSQL's server binaries (initdb, postgres) are not installed")
	}
	return initdb, server
}

// unprivileged is whom to run the server as: it refuses to be root.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
			if err1 == nil && err2 == nil {
				return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			}
		}
	}
	t.Skip("this runs as root, and there is no user to run PostgreSQL as")
	return nil
}

func waitUp(uri string, exited <-chan struct{}) error {
	db, err := sql.Open("pgx", uri+"&password="+PostgresPassword)
	if err != nil {
		return err
	}
	defer db.Close()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond) // the server tells nobody when it is ready
	defer tick.Stop()
	for {
		if err = db.Ping(); err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("it ended: %w", err)
		case <-deadline:
			return err
		case <-tick.C:
		}
	}
}
