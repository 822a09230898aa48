package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// plain has nothing but what Describe says, and a drop.
type plain struct {
	Sink
	d *sinkv1.DescribeResponse
}

func (p plain) Describe() *sinkv1.DescribeResponse { return p.d }

func (plain) DropTable(context.Context, *sinkv1.DropTableRequest) (*sinkv1.DropTableResponse, error) {
	return &sinkv1.DropTableResponse{}, nil
}

func good() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "plain", Version: "0.3.0", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE, Creates: []string{"_log/*.json"},
		Summary: "a plain sink", Capabilities: []sinkv1.Capability{sinkv1.Capability_CAPABILITY_GROUP_COMMIT},
	}
}

func TestRun_DescribeAndByHand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, run(plain{d: good()}, []string{"describe"}, &out, &errout))
	var d Description
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, "plain", d.Name)
	require.Equal(t, 1, d.Protocol)
	require.Equal(t, "storage", d.CommitPoint)
	require.Equal(t, []string{"drop_table", "group_commit"}, d.Capabilities, "what follows from the type is added")
	require.Empty(t, errout.String())

	out.Reset()
	require.Equal(t, 2, run(plain{d: good()}, nil, &out, &errout))
	for _, s := range []string{`"plain"`, "a plain sink", "describe", "plugins.lock", "signet-sink-plain"} {
		require.Contains(t, errout.String(), s)
	}
	require.Empty(t, out.String())
	errout.Reset()
	require.Equal(t, 2, run(plain{d: good()}, []string{"--help"}, &out, &errout))
	require.Contains(t, errout.String(), "describe")
	require.Equal(t, 1, run(plain{d: &sinkv1.DescribeResponse{}}, []string{"describe"}, &out, &errout))
}

func TestDescribe_Refusals(t *testing.T) {
	for name, change := range map[string]func(*sinkv1.DescribeResponse){
		"no name":         func(d *sinkv1.DescribeResponse) { d.Name = "" },
		"no commit point": func(d *sinkv1.DescribeResponse) { d.CommitPoint = 0 },
		"absolute":        func(d *sinkv1.DescribeResponse) { d.Creates = []string{"/etc/*"} },
		"dots":            func(d *sinkv1.DescribeResponse) { d.Hints = []string{"../x"} },
		"bad pattern":     func(d *sinkv1.DescribeResponse) { d.CommitPoints = []string{"[x"} },
		"no method": func(d *sinkv1.DescribeResponse) {
			d.Capabilities = append(d.Capabilities, sinkv1.Capability_CAPABILITY_PLAN_SCAN)
		},
	} {
		d := good()
		change(d)
		_, err := describe(plain{d: d})
		require.Error(t, err, name)
	}
}

func TestHandler_WritesWhatTheHostParses(t *testing.T) {
	var out bytes.Buffer
	l := slog.New(NewHandler(&out, slog.LevelDebug)).With("a", 1).WithGroup("g")
	l.Warn("hello", "level", "mine", "b", strings.Repeat("x", 100_000))
	l.Debug("d")
	l.Error(strings.Repeat("m", 100_000))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	for i, want := range []string{"warn", "debug", "error"} {
		require.LessOrEqual(t, len(lines[i]), maxLine)
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &m))
		require.Equal(t, want, m["@level"])
		require.IsType(t, "", m["@message"])
		require.IsType(t, "", m["@timestamp"])
	}
	require.Contains(t, lines[0], `"@message":"hello"`)
}

func TestShield_KnowsTheHandshake(t *testing.T) {
	require.True(t, isHandshake([]byte("1|1|unix|/x|grpc|cert\n")))
	require.True(t, isHandshake([]byte("1|1|unix|/x|grpc\n")))
	for _, s := range []string{"", "\n", "1|2|3\n", "hello|1|unix|/x|grpc\n"} {
		require.False(t, isHandshake([]byte(s)), s)
	}
}
