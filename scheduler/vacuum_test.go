package scheduler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/uri"
)

// tableFiles makes a table's directory, in which every file is ten days old.
func tableFiles(t *testing.T, names ...string) *vacuumCheck {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t")
	for _, name := range names {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("rows"), 0o600))
		old := time.Now().Add(-10 * 24 * time.Hour)
		require.NoError(t, os.Chtimes(file, old, old))
	}
	store, err := storage.Local.Open(t.Context(), "file://"+dir)
	require.NoError(t, err)
	return &vacuumCheck{
		v: &vacuum{before: time.Now().Add(-vacuumAge)}, store: store, live: map[string]bool{}, nested: map[string]bool{}, logs: []string{"_delta_log"},
		sink: &sinkv1.DescribeResponse{CommitPoints: []string{"_delta_log/[0-9]*.json"}, Hints: []string{"_delta_log/_last_checkpoint"}},
	}
}

func (c *vacuumCheck) propose(t *testing.T, name string, change ...func(*sinkv1.Proposal)) *sinkv1.Proposal {
	t.Helper()
	p := &sinkv1.Proposal{Uri: c.store.Location() + "/" + name, Reason: "nothing names it"}
	if info, err := c.store.Stat(t.Context(), p.Uri); err == nil {
		p.SizeBytes, p.MtimeMillis = info.Size, info.ModTime.UnixMilli()
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// C11: what a sink proposes is deleted only if nothing speaks against it.
func TestVacuum_EachProposalIsChecked(t *testing.T) {
	const job = "0197-running"
	c := tableFiles(t, "a.parquet", "b.parquet", "live.parquet", "dv.bin", "young.parquet", job+"/0/x.parquet", "p=1/c.parquet", "_delta_log/00000000000000000007.json",
		"_delta_log/_last_checkpoint", "_delta_log/00000000000000000007.checkpoint.parquet", "inner/_delta_log/00000000000000000000.json", "inner/data.parquet", "ice/d.parquet")
	other := filepath.Join(filepath.Dir(strings.TrimPrefix(c.store.Location(), "file://")), "t2", "x.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(other), 0o755))
	require.NoError(t, os.WriteFile(other, []byte("rows"), 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(strings.TrimPrefix(c.store.Location(), "file://"), "young.parquet"), time.Now(), time.Now()))
	c.live[uri.Key(c.store.Location()+"/live.parquet")], c.live[uri.Key(c.store.Location()+"/dv.bin")] = true, true
	c.jobs, c.foreign = []string{job}, []string{c.store.Location() + "/ice"}
	for name, tc := range map[string]struct {
		p    *sinkv1.Proposal
		want string
	}{
		"a live file":        {c.propose(t, "live.parquet"), "newest version has it"},
		"a deletion vector":  {c.propose(t, "dv.bin"), "newest version has it"},
		"a young file":       {c.propose(t, "young.parquet"), "younger than"},
		"of a running job":   {c.propose(t, job+"/0/x.parquet"), "of a job that runs"},
		"a commit":           {c.propose(t, "_delta_log/00000000000000000007.json"), "table's log"},
		"a hint":             {c.propose(t, "_delta_log/_last_checkpoint"), "table's log"},
		"a checkpoint":       {c.propose(t, "_delta_log/00000000000000000007.checkpoint.parquet"), "table's log"},
		"of a nested table":  {c.propose(t, "inner/data.parquet"), "another table"},
		"of a foreign table": {c.propose(t, "ice/d.parquet"), "another table"},
		"beside the table":   {c.propose(t, "../t2/x.parquet"), "does not lie below"},
		"a twin's prefix":    {&sinkv1.Proposal{Uri: c.store.Location() + "2/x.parquet"}, "does not lie below"},
		"elsewhere":          {&sinkv1.Proposal{Uri: "file:///etc/passwd"}, "does not lie below"},
		"the table":          {&sinkv1.Proposal{Uri: c.store.Location()}, "does not lie below"},
		"nothing":            {&sinkv1.Proposal{}, "does not lie below"},
		"a directory":        {c.propose(t, "p=1"), "gone"},
		"gone":               {c.propose(t, "gone.parquet"), "gone"},
		"another size":       {c.propose(t, "a.parquet", func(p *sinkv1.Proposal) { p.SizeBytes++ }), "not the file that the sink has seen"},
		"another time":       {c.propose(t, "a.parquet", func(p *sinkv1.Proposal) { p.MtimeMillis-- }), "not the file that the sink has seen"},
	} {
		c.why = ""
		files, err := c.passed(t.Context(), []*sinkv1.Proposal{tc.p})
		require.NoError(t, err, name)
		require.Empty(t, files, name)
		require.Contains(t, c.why, tc.want, name)
	}
	c.why = ""
	files, err := c.passed(t.Context(), []*sinkv1.Proposal{c.propose(t, "a.parquet"), c.propose(t, "p=1/c.parquet"), c.propose(t, "b.parquet"), c.propose(t, "a.parquet")})
	require.NoError(t, err)
	require.Equal(t, []string{c.store.Location() + "/a.parquet", c.store.Location() + "/p=1/c.parquet", c.store.Location() + "/b.parquet"}, files)
	require.Contains(t, c.why, "twice")
	c.v.within = c.store.Location() + "/p=1"
	files, err = c.passed(t.Context(), []*sinkv1.Proposal{c.propose(t, "a.parquet"), c.propose(t, "p=1/c.parquet")})
	require.NoError(t, err)
	require.Equal(t, []string{c.store.Location() + "/p=1/c.parquet"}, files)
	gone, err := removeEach(t.Context(), c.store, append(files, c.store.Location()+"/was/gone.parquet"))
	require.NoError(t, err)
	require.Len(t, gone, 2, "who finds a file gone has nothing left to do")
	require.NoFileExists(t, strings.TrimPrefix(files[0], "file://"))
}
