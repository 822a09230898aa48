package eventlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// S47: a reader meets numbers and names.
func TestStageID_IsANumberOrAName(t *testing.T) {
	for text, want := range map[string]StageID{`0`: "0", `12`: "12", `"scheduler"`: SchedulerStage, `"7"`: "7"} {
		var id StageID
		require.NoError(t, json.Unmarshal([]byte(text), &id))
		require.Equal(t, want, id)
	}
	for _, text := range []string{`1.5`, `null1`, `{}`, `[1]`, `true`} {
		var id StageID
		require.Error(t, json.Unmarshal([]byte(text), &id), text)
	}
	b, err := json.Marshal([]StageID{"3", SchedulerStage})
	require.NoError(t, err)
	require.JSONEq(t, `[3,"scheduler"]`, string(b))
}

func TestRead_SkipsWhatItCannotRead(t *testing.T) {
	h, err := Read(strings.NewReader(`{"type":"submitted","job":"j","time":"2026-03-01T12:00:00Z","later_version":{"x":1}}

{"type":"attempt","job":"j","stage":0,"ta
not json
[]
{"job":"j"}
{"type":"root","job":"j","event":"started","stage":"scheduler"}
{"type":"from-the-future","job":"j","stage":"scheduler"}
`))
	require.NoError(t, err)
	require.Equal(t, 4, h.Skipped)
	require.Equal(t, "submitted root from-the-future", types(h))
	require.Nil(t, h.End())
	require.Empty(t, h.Plan())
	require.Empty(t, h.Stages())
	var text strings.Builder
	require.NoError(t, h.WriteText(&text))

	_, err = Read(strings.NewReader("PAR1\x00\x01"))
	require.ErrorIs(t, err, ErrNoHistory)
	_, err = ReadFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWriteText_ShowsWhatHappenedWhen(t *testing.T) {
	scheduler := SchedulerStage
	h := &History{Skipped: 1, Records: []Record{
		{Time: noon, Type: Submitted, Job: "j1", Principal: "ann", Statement: "INSERT INTO lake.a.b\nSELECT \x1b[2J 1", Trace: "4bf92f3577b34da6a3ce929d0e0e4736"},
		{Time: at(12 * time.Millisecond), Type: Planned, Job: "j1", Plan: "[scheduler] Commit lake.a.b\nStage 0: 2 tasks\n", Stages: []StageRecord{{ID: "0", Tasks: 2}, {ID: SchedulerStage}}},
		{Time: at(13 * time.Millisecond), Type: Stage, Event: Started, Stage: stageID(0), Tasks: 2, Job: "j1"},
		{Time: at(14 * time.Millisecond), Type: Attempt, Event: Launched, Stage: stageID(0), Task: ptr(int32(1)), Number: 1, Job: "j1"},
		{Time: at(20 * time.Millisecond), Type: Attempt, Event: Failed, Stage: stageID(0), Task: ptr(int32(1)), Number: 1, Executor: "e1", Class: "io", Error: &Failure{Message: "disk"}, Micros: 6000, Job: "j1"},
		{Time: at(40 * time.Millisecond), Type: Attempt, Event: Succeeded, Stage: stageID(0), Task: ptr(int32(1)), Number: 2, Executor: "e2", Rows: 1, Bytes: 300, Micros: 9000, Job: "j1"},
		{Time: at(41 * time.Millisecond), Type: Stage, Event: Completed, Stage: stageID(0), Rows: 5, Bytes: 900, Micros: 28000, Job: "j1"},
		{Time: at(42 * time.Millisecond), Type: Root, Event: Started, Stage: &scheduler, Job: "j1"},
		{Time: at(43 * time.Millisecond), Type: Phase, Phase: "resolving", Message: "no answer", Job: "j1"},
		{Time: at(44 * time.Millisecond), Type: Recovered, Job: "j1"},
		{Time: at(60 * time.Millisecond), Type: Root, Event: Failed, Stage: &scheduler, Micros: 18000, Error: &Failure{Code: "refused", Message: "no", Hint: "ask"}, Job: "j1"},
		{Time: at(61 * time.Millisecond), Type: End, State: "failed", Error: &Failure{Code: "refused", Message: "no"}, Dropped: 3, Job: "j1"},
	}}
	var b strings.Builder
	require.NoError(t, h.WriteText(&b))
	require.Equal(t, strings.TrimPrefix(`
job        j1
statement  INSERT INTO lake.a.b
           SELECT `+"\ufffd"+`[2J 1
submitted  2026-03-01T12:00:00Z by ann
trace      4bf92f3577b34da6a3ce929d0e0e4736
state      Failed after 61ms
error      no (refused)
note       3 events did not fit the log
note       1 line could not be read

    0.000000  submitted
    0.012000  planned: 1 stage, 2 tasks and the scheduler root
    0.013000  stage 0 started: 2 tasks
    0.014000  stage 0 task 1 launched
    0.020000  stage 0 task 1 failed on e1 (io): disk after 6ms
    0.040000  stage 0 task 1 attempt 2 succeeded on e2 after 9ms, 1 row, 300 bytes
    0.041000  stage 0 completed after 28ms, 5 rows, 900 bytes
    0.042000  scheduler root started
    0.043000  phase resolving: no answer
    0.044000  taken up again after a restart of the scheduler
    0.060000  scheduler root failed: no (refused); ask after 18ms
    0.061000  end: Failed: no (refused)

plan
[scheduler] Commit lake.a.b
Stage 0: 2 tasks
`, "\n"), b.String())
}

func write(t *testing.T, dir, job string, lines ...string) string {
	t.Helper()
	path, err := Path(dir, job)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	return path
}

func TestEnded_LooksAtTheLastLine(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 5*tailBlock)
	for name, c := range map[string]struct {
		lines []string
		want  bool
	}{
		"empty":   {nil, false},
		"open":    {[]string{`{"type":"submitted","job":"j"}`, ""}, false},
		"ended":   {[]string{`{"type":"submitted","job":"j"}`, `{"type":"end","job":"j"}`, ""}, true},
		"long":    {[]string{`{"type":"submitted","job":"j"}`, `{"type":"end","job":"j","plan":"` + long + `"}`, ""}, true},
		"only":    {[]string{`{"type":"end","job":"j","plan":"` + long + `"}`}, true},
		"cut":     {[]string{`{"type":"submitted","job":"j"}`, `{"type":"end","job":"j","pl`}, false},
		"mention": {[]string{`{"type":"submitted","job":"j","statement":"{\"type\":\"end\"}"}`}, false},
	} {
		got, err := Ended(write(t, dir, name, c.lines...))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	got, err := Ended(filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.False(t, got)
}

// What a crash has kept from the log is there after the next start.
func TestRepair_WritesMissingEndsAndRemovesTheUnknown(t *testing.T) {
	l := newLog(t, Config{})
	dir := l.Dir()
	write(t, dir, "complete", `{"type":"submitted","job":"complete"}`, `{"type":"end","job":"complete","state":"successful"}`, "")
	write(t, dir, "cut", `{"type":"submitted","job":"cut"}`, `{"type":"attempt","job":"cut","sta`)
	write(t, dir, "running", `{"type":"submitted","job":"running"}`, "")
	write(t, dir, "forgotten", `{"type":"submitted","job":"forgotten"}`, "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o600))
	known := func(id string) (func() Record, bool) {
		switch id {
		case "complete", "cut", "missing":
			return func() Record { return Record{Type: End, Job: id, State: "failed"} }, true
		case "running":
			return nil, true
		}
		return nil, false
	}
	require.NoError(t, l.Repair(known, []string{"complete", "cut", "missing"}))
	h := l.read(t, "cut")
	require.Equal(t, "submitted end", types(h))
	require.Equal(t, 1, h.Skipped)
	require.Equal(t, "end", types(l.read(t, "missing")))
	require.Equal(t, "successful", l.read(t, "complete").End().State)
	require.Equal(t, "submitted", types(l.read(t, "running")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 5, "what is not ours stays, what is of no known job goes")
}

func TestRepair_ANewLogKnowsNothingOfOlderJobs(t *testing.T) {
	l := newLog(t, Config{})
	require.NoError(t, l.Repair(func(string) (func() Record, bool) {
		return func() Record { return Record{Type: End, Job: "old"} }, true
	}, []string{"old"}))
	require.NoError(t, l.Flush(t.Context()))
	left, err := os.ReadDir(l.Dir())
	require.NoError(t, err)
	require.Empty(t, left)
}
