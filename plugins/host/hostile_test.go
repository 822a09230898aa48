package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/host"
	"github.com/signet-io/signet/plugins/protocol"
	"github.com/signet-io/signet/plugins/sdk"
)

// The test binary is also the plugin, and the host that gets killed: the variable says which.
const (
	modeEnv = "SIGNET_TEST_PLUGIN"
	markEnv = "SIGNET_TEST_MARK" // names the processes of one test in /proc/*/environ
	hostEnv = "SIGNET_TEST_HOST"

	levelEnv = "SIGNET_TEST_ISOLATION" // of the killed host's plugin, as a number
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv(modeEnv); {
	case len(os.Args) == 2 && os.Args[1] == "describe":
		sdk.Serve(hostile{})
	case os.Getenv(protocol.CookieKey) != "":
		behave(mode)
		os.Exit(0)
	case os.Getenv(hostEnv) != "":
		hostUntilKilled(os.Getenv(hostEnv))
	}
	os.Exit(m.Run())
}

// hostUntilKilled is a host that starts one plugin, says so, and waits for its end.
func hostUntilKilled(path string) {
	level, _ := strconv.Atoi(os.Getenv(levelEnv))
	self, _ := os.Executable()
	p, err := host.Start(context.Background(), host.Config{
		Name: "hostile", Path: path, Unlocked: true, Dir: os.Getenv("SIGNET_TEST_DIR"), AllowEnv: []string{modeEnv, markEnv},
		Isolation: host.Isolation(level), AllowRead: []string{filepath.Dir(self)},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() { // questions for the plugin, in which PID means this process
		r, err := p.Client().Lookup(context.Background(), &sinkv1.LookupRequest{Marker: strings.ReplaceAll(in.Text(), "PID", strconv.Itoa(os.Getpid()))})
		fmt.Println(r.GetFound(), err)
	}
	select {}
}

// behave is the plugin's main, with a vice before it.
func behave(mode string) {
	switch mode {
	case "stdout":
		fmt.Println("hello from a package initialiser")
	case "silent":
		select {}
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot find my configuration")
		os.Exit(3)
	case "version":
		fmt.Println("1|7|unix|/nowhere|grpc|")
		select {}
	case "core":
		fmt.Println("9|1|unix|/nowhere|grpc|")
		select {}
	case "netrpc":
		fmt.Printf("1|1|unix|%s/x|netrpc|\n", os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		select {}
	case "elsewhere":
		fmt.Println("1|1|tcp|203.0.113.1:80|grpc|")
		select {}
	case "deaf": // listens, and never accepts
		path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "x")
		if _, err := net.Listen("unix", path); err != nil {
			panic(err)
		}
		fmt.Printf("1|1|unix|%s|grpc|\n", path)
		select {}
	case "endless": // a line that never ends
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "stderr":
		for _, l := range hostileLines {
			fmt.Fprintln(os.Stderr, l)
		}
		go flood(os.Stderr)
	}
	sdk.Serve(hostile{})
}

var hostileLines = []string{
	`{"@message":1,"@level":"info"}`, `{"@message":"m","@level":7,"@timestamp":[]}`, `{"@timestamp":1}`, `{"@message":null}`, `[1,2`, `{`, `null`,
	"panic: not really", "\x1b[2J\x00\xff\xfe", strings.Repeat("y", 1<<20), `{"@message":"ok","@level":"warn","deep":{"a":[{"b":1}]}}`,
}

func flood(w io.Writer) {
	line := []byte(strings.Repeat("z", 200) + "\n")
	for range 100_000 {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// hostile is a sink that does what the table's name or the marker tells it.
type hostile struct{}

func (hostile) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{Name: "hostile", Version: "1.2.3", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE}
}

func vice(ctx context.Context, t *sinkv1.TableRef) (string, error) {
	switch t.GetName() {
	case "crash":
		fmt.Fprintln(os.Stderr, "swapped stderr")
		_, _ = syscall.Write(2, []byte("my last words\n"))
		os.Exit(7)
	case "panic":
		panic("oh no")
	case "hang":
		<-ctx.Done()
		return "", ctx.Err()
	case "huge":
		return strings.Repeat("h", 17<<20), nil
	case "slow":
		time.Sleep(300 * time.Millisecond) // a call that takes its time
		return "done", nil
	case "refuse":
		return "", sdk.Refuse(sdk.NotFound, "no such table")
	}
	return "", nil
}

func (hostile) PrepareWrite(ctx context.Context, r *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	s, err := vice(ctx, r.GetTable())
	return &sinkv1.PrepareWriteResponse{Spec: &planv1.WriteSpec{BaseVersion: s}}, err
}

func (hostile) Stage(ctx context.Context, h *sinkv1.StageHeader, m *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	if _, err := m.Next(); !errors.Is(err, io.EOF) {
		return nil, err
	}
	_, err := vice(ctx, h.GetTable())
	return &sinkv1.StageResponse{}, err
}

func (hostile) Commit(ctx context.Context, r *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	s, err := vice(ctx, r.GetTable())
	return &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_COMMITTED, Version: s}, err
}

// Lookup carries out the marker and answers in the version.
func (hostile) Lookup(ctx context.Context, r *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	if _, err := vice(ctx, r.GetTable()); err != nil {
		return nil, err
	}
	verb, arg, _ := strings.Cut(r.GetMarker(), " ")
	out, err := probe(ctx, verb, arg)
	if err != nil {
		out = "error: " + err.Error()
	}
	return &sinkv1.LookupResponse{Found: err == nil, Version: out}, nil
}

func probe(ctx context.Context, verb, arg string) (string, error) {
	switch verb {
	case "read":
		b, err := os.ReadFile(arg)
		return string(b), err
	case "write":
		f, err := os.OpenFile(arg, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return "", err
		}
		return "opened", f.Close()
	case "remove":
		return "removed", os.Remove(arg)
	case "list":
		_, err := os.ReadDir(arg)
		return "listed", err
	case "memory": // the first readable page that a map file names
		return readMemory(arg)
	case "dial":
		c, err := net.DialTimeout("tcp", arg, 2*time.Second)
		if err != nil {
			return "", err
		}
		return "connected", c.Close()
	case "environ":
		return strings.Join(os.Environ(), "\n"), nil
	case "kill":
		return "signalled", sh(ctx, "kill -0 "+arg)
	case "fork": // leaves its group and holds the streams
		c := exec.Command("sleep", "1000")
		c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: arg == "setsid"}
		return "forked", c.Start()
	case "interrupt":
		return "survived", syscall.Kill(os.Getpid(), syscall.SIGINT)
	case "pgrp":
		return fmt.Sprint(syscall.Getpgrp() == os.Getpid(), " ", signal.Ignored(os.Interrupt)), nil
	case "stdin":
		b, err := io.ReadAll(os.Stdin)
		return fmt.Sprintf("%d bytes", len(b)), err
	case "fds":
		return fds()
	case "location":
		return sdk.HostFrom(ctx).Location(ctx)
	case "dir":
		return os.Getwd()
	case "print":
		fmt.Println("printed to standard output")
		fmt.Fprintln(os.Stderr, "printed to standard error")
		_, err := syscall.Write(1, []byte("raw write to standard output\n"))
		return "printed", err
	}
	return "", errors.New("unknown verb " + verb)
}

func sh(ctx context.Context, script string) error {
	out, err := exec.CommandContext(ctx, "sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func readMemory(pid string) (string, error) {
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return "", err
	}
	var from int64
	if _, err := fmt.Sscanf(string(maps), "%x-", &from); err != nil {
		return "", err
	}
	f, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		return "", err
	}
	defer f.Close()
	page := make([]byte, 4096)
	_, err = f.ReadAt(page, from)
	return "read a page", err
}

// fds lists the open files that are neither the plugin's own sockets and pipes nor standard streams.
func fds() (string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	var out []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && strings.HasPrefix(target, "/") && target != "/dev/null" && !strings.HasPrefix(target, "/sys/fs/cgroup/") {
			out = append(out, target)
		}
	}
	return strings.Join(out, " "), nil
}
