package host

import (
	"bufio"
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse_TakesNothingForGranted(t *testing.T) {
	for _, c := range []struct {
		line  string
		level slog.Level
		msg   string
		attrs int
	}{
		{`{"@message":"m","@level":"warn","@timestamp":"x","k":1,"deep":{"a":[]}}`, slog.LevelWarn, "m", 2},
		{`{"@message":"m"}`, slog.LevelInfo, "m", 0},
		{`{"@message":"m","@level":7}`, slog.LevelInfo, "m", 0},
		{`{"@message":1,"@level":"info"}`, slog.LevelInfo, `{"@message":1,"@level":"info"}`, 0},
		{`{"@message":null}`, slog.LevelInfo, `{"@message":null}`, 0},
		{`{"msg":"other"}`, slog.LevelInfo, `{"msg":"other"}`, 0},
		{`{`, slog.LevelInfo, `{`, 0},
		{`[]`, slog.LevelInfo, `[]`, 0},
		{`panic: no`, slog.LevelError, `panic: no`, 0},
	} {
		level, msg, attrs := parse(c.line)
		require.Equal(t, c.level, level, c.line)
		require.Equal(t, c.msg, msg)
		require.Len(t, attrs, c.attrs)
	}
	_, _, attrs := parse(`{"@message":"m"` + strings.Repeat(`,"k`+"`"+`":1`, 1) + many(1000) + `}`)
	require.LessOrEqual(t, len(attrs), maxAttrs)
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"` + strings.Repeat("k", i+1) + `":1`)
	}
	return b.String()
}

func TestLogSink_BoundsFloodsAndLines(t *testing.T) {
	var out bytes.Buffer
	s := newLogSink(slog.New(slog.NewTextHandler(&out, nil)))
	now := time.Unix(1, 0)
	s.now = func() time.Time { return now }
	s.drain(strings.NewReader(strings.Repeat("line\n", 10_000)), "stderr")
	require.Equal(t, burst, strings.Count(out.String(), "msg=line"))
	now = now.Add(time.Second)
	s.drain(strings.NewReader("after\n"), "stderr")
	require.Contains(t, out.String(), "lines=9800", "what was dropped is said")
	require.Contains(t, out.String(), "msg=after")

	out.Reset()
	now = now.Add(time.Hour)
	s.drain(strings.NewReader(strings.Repeat("x", 10*maxLine)+"\nnext"), "stderr")
	require.Contains(t, out.String(), "msg=next", "a line without an end does not hide the next")
	require.Less(t, out.Len(), maxLine+1000)
	tail := s.lastLines()
	require.Len(t, tail, tailLines)
	require.Equal(t, "next", tail[len(tail)-1])
	require.LessOrEqual(t, len(tail[len(tail)-2]), tailLine+len("…"))
	s.remember(strings.Repeat("é", tailLine))
	require.NotContains(t, s.lastLines()[tailLines-1], "\uFFFD", "cut between characters")
}

func TestHandshake_Lines(t *testing.T) {
	for line, want := range map[string]error{
		"1|1|unix|/run/s/d/x|grpc|cert\n":     nil,
		"1|1|unix|/run/s/d/x|grpc|\n":         nil,
		"1|1|unix|/run/s/d/x|grpc\n":          nil,
		"":                                    ErrHandshake,
		"1|1|unix|/run/s/d/x|grpc|cert":       ErrHandshake, // cut
		"hello\n":                             ErrHandshake,
		"|||||\n":                             ErrHandshake,
		"x|1|unix|/run/s/d/x|grpc|\n":         ErrHandshake,
		"2|1|unix|/run/s/d/x|grpc|\n":         ErrProtocol,
		"1|2|unix|/run/s/d/x|grpc|\n":         ErrProtocol,
		"1|0|unix|/run/s/d/x|grpc|\n":         ErrProtocol,
		"1|1|unix|/run/s/d/x|netrpc|\n":       ErrProtocol,
		"1|1|tcp|127.0.0.1:1|grpc|\n":         ErrHandshake,
		"1|1|unix|/run/sx/y|grpc|\n":          ErrHandshake,
		"1|1|unix|/run/s/../../x|grpc|\n":     ErrHandshake,
		"1|1|unix|/run/s|grpc|\n":             ErrHandshake,
		"\x1b]0;title\x07\n":                  ErrHandshake,
		strings.Repeat("|", 100_000) + "\n":   ErrHandshake,
		"1|1|unix|/run/s/d/x|grpc|c|true|x\n": nil,
	} {
		got, bad := handshake(bufio.NewReaderSize(strings.NewReader(line), maxHandshake), "/run/s")
		if want == nil {
			require.Nil(t, bad, line)
			require.Equal(t, line, got)
			continue
		}
		require.NotNil(t, bad, "%.60q", line)
		require.Equal(t, want, bad.kind, "%.60q", line)
		require.Less(t, len(bad.detail), 500)
		require.NotContains(t, bad.detail, "\x1b")
	}
}
