package host

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/plugins/protocol"
)

const maxHandshake = 8 << 10

// greeting is what became of the handshake line.
type greeting struct {
	kind   error
	detail string
	hint   string
	silent bool // it said nothing at all
}

// handshake reads the one line that a plugin announces itself with. It gives the line to go-plugin only if it is one that go-plugin will
// like: its own messages for the rest name neither the plugin nor a remedy.
func handshake(r *bufio.Reader, sockets string) (line string, bad *greeting) {
	b, err := r.ReadSlice('\n')
	line = string(b)
	text := clean(strings.TrimRight(line, "\r\n"))
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	if err != nil && text == "" {
		return "", &greeting{
			kind: ErrHandshake, detail: "it ended, or closed its standard output, without a word", silent: true,
			hint: "run it by hand to see why; main must call sdk.Serve",
		}
	}
	parts := strings.Split(strings.TrimSpace(line), "|")
	if err != nil || len(parts) < 5 {
		return "", &greeting{
			kind: ErrHandshake, detail: fmt.Sprintf("its first line on standard output is %q, not the handshake", text),
			hint: "nothing may print to standard output before sdk.Serve; print to standard error or use slog",
		}
	}
	if bad := checkGreeting(parts, sockets); bad != nil {
		return "", bad
	}
	return line, nil
}

func checkGreeting(parts []string, sockets string) *greeting {
	core, err1 := strconv.Atoi(parts[0])
	version, err2 := strconv.Atoi(parts[1])
	switch {
	case err1 != nil || err2 != nil:
		return &greeting{kind: ErrHandshake, detail: fmt.Sprintf("its handshake opens with %q", clean(parts[0]+"|"+parts[1])), hint: "main must call sdk.Serve"}
	case core != protocol.Core:
		return &greeting{kind: ErrProtocol, detail: fmt.Sprintf("go-plugin protocol %d, this host has %d", core, protocol.Core), hint: "rebuild it with a current go-plugin"}
	case version != protocol.Version:
		hint := "install a version of the plugin that was built for this Signet"
		if version > protocol.Version {
			hint = "update Signet, or install an older version of the plugin"
		}
		return &greeting{kind: ErrProtocol, detail: fmt.Sprintf("it speaks sink protocol %d, this host speaks %d", version, protocol.Version), hint: hint}
	case parts[4] != "grpc":
		return &greeting{kind: ErrProtocol, detail: fmt.Sprintf("it serves %q, this host speaks gRPC only", clean(parts[4])), hint: "serve it with sdk.Serve, or with a gRPC server"}
	case parts[2] != "unix" || !inside(sockets, parts[3]):
		return &greeting{
			kind: ErrHandshake, detail: fmt.Sprintf("it listens on %q %q", clean(parts[2]), clean(parts[3])),
			hint: "it must listen on a Unix socket in the directory that PLUGIN_UNIX_SOCKET_DIR names",
		}
	}
	return nil
}

// inside: a plugin decides where the host connects to, so that must be its own directory.
func inside(dir, path string) bool {
	rel, ok := strings.CutPrefix(path, dir+"/")
	return ok && rel != "" && !slices.Contains(strings.Split(rel, "/"), "..")
}

// greet reads the handshake, passes it on, and logs what follows.
func greet(stdout io.Reader, sockets string, pass io.Writer, logs *logSink, done func(*greeting)) {
	r := bufio.NewReaderSize(stdout, maxHandshake)
	line, bad := handshake(r, sockets)
	done(bad)
	if bad == nil {
		_, _ = io.WriteString(pass, line) // fails only if go-plugin has given up, and then so do we
	}
	logs.drain(r, "stdout")
}
