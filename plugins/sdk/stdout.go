package sdk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
)

// shield keeps standard output for the handshake line: everything else that is printed goes to standard error. Prints of package
// initialisers come before it; the host quotes those.
type shield struct {
	real *os.File // where the host reads the handshake
	pipe *os.File // os.Stdout while go-plugin announces itself
}

func shieldStdout() (*shield, error) {
	real, err := divert() // also catches prints that do not go through os.Stdout, of C libraries for instance
	if err != nil {
		return nil, fmt.Errorf("set standard output aside: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("set standard output aside: %w", err)
	}
	os.Stdout = w
	s := &shield{real: real, pipe: w}
	go s.sort(r)
	return s, nil
}

// sort forwards go-plugin's line and logs all others. It ends with the process: go-plugin and the sink hold the pipe until then.
func (s *shield) sort(r *os.File) {
	announced := false
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case !announced && isHandshake(line):
			announced = true
			if _, err := s.real.Write(line); err != nil {
				log().Error("cannot announce the plugin", "error", err)
			}
		case len(line) > 0:
			log().Warn("printed to standard output, which belongs to the handshake; use slog", "text", string(bytes.TrimSpace(line)))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// isHandshake knows core|app|network|address|grpc|...
func isHandshake(line []byte) bool {
	parts := bytes.Split(line, []byte("|"))
	return len(parts) >= 5 && string(parts[0]) == "1" && bytes.HasPrefix(parts[4], []byte("grpc"))
}

func (s *shield) restore() { _ = s.pipe.Close() }
