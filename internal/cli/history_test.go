package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/cli"
)

const historyLines = `{"time":"2026-03-01T12:00:00Z","type":"submitted","job":"j1","principal":"ann","statement":"INSERT INTO t SELECT 1"}
{"time":"2026-03-01T12:00:01Z","type":"planned","job":"j1","plan":"[scheduler] Commit t\nStage 0: 1 task\n","stages":[{"id":0,"tasks":1},{"id":"scheduler"}]}
{"time":"2026-03-01T12:00:02Z","type":"root","job":"j1","event":"started","stage":"scheduler"}
{"time":"2026-03-01T12:00:03Z","type":"end","job":"j1","state":"successful","stages":[{"id":0,"tasks":1},{"id":"scheduler"}]}
`

func writeHistory(t *testing.T) (dataDir, file string) {
	t.Helper()
	dataDir = t.TempDir()
	file = filepath.Join(dataDir, "events", "j1.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(historyLines), 0o600))
	return dataDir, file
}

// S47: the reader survives a stage that is no number; by file and by job.
func TestHistory_ShowsAFileOrAJob(t *testing.T) {
	dir, file := writeHistory(t)
	for _, args := range [][]string{{file}, {"j1", "--data-dir", dir}} {
		var c command
		require.Equal(t, cli.ExitOK, c.run(t, append([]string{"history"}, args...)...), c.err.String())
		for _, want := range []string{"INSERT INTO t SELECT 1", "1.000000  planned: 1 stage, 1 task and the scheduler root", "2.000000  scheduler root started", "end: Successful", "[scheduler] Commit t"} {
			require.Contains(t, c.out.String(), want)
		}
	}
	t.Chdir(filepath.Dir(file))
	var c command
	require.Equal(t, cli.ExitOK, c.run(t, "history", "j1.jsonl"))
}

func TestHistory_AsJSON(t *testing.T) {
	_, file := writeHistory(t)
	var c command
	require.Equal(t, cli.ExitOK, c.run(t, "history", file, "-o", "json"))
	var got struct {
		Job    string `json:"job"`
		Events []struct {
			Type  string `json:"type"`
			Stage any    `json:"stage"`
		} `json:"events"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &got), c.out.String())
	require.Equal(t, "j1", got.Job)
	require.Len(t, got.Events, 4)
	require.Equal(t, "scheduler", got.Events[2].Stage)
}

func TestHistory_SaysWhatIsWrong(t *testing.T) {
	dir, file := writeHistory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.jsonl"), []byte("text\n"), 0o600))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"j2", "--data-dir", dir}, cli.ExitFailed, "--data-dir"},
		{[]string{filepath.Join(dir, "none.jsonl")}, cli.ExitFailed, "there is no history at"},
		{[]string{filepath.Join(dir, "other.jsonl")}, cli.ExitFailed, "holds no job's history"},
		{[]string{"what is this"}, cli.ExitUsage, "neither a file nor a job's id"},
		{[]string{file, "-o", "xml"}, cli.ExitUsage, "text or json"},
		{[]string{}, cli.ExitUsage, "usage"},
	} {
		var cmd command
		require.Equal(t, c.code, cmd.run(t, append([]string{"history"}, c.args...)...), c.args)
		require.Contains(t, cmd.err.String(), c.says)
	}
}
