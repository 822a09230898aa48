package chaos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

const (
	successful = schedulerv1.JobState_JOB_STATE_SUCCESSFUL
	failed     = schedulerv1.JobState_JOB_STATE_FAILED
	cancelled  = schedulerv1.JobState_JOB_STATE_CANCELLED
)

// tolerated are the reasons for which a statement may fail because too many processes died: each is definite, and nothing of it landed.
var tolerated = regexp.MustCompile(strings.Join([]string{
	`was lost \d+ times`,
	`sink .* (died|crashed)`,
}, "|"))

// unrepeatable is why a statement may fail whose rows cannot be made again (S73).
var unrepeatable = regexp.MustCompile(`is accepted, and what it read would not come out the same again`)

func (st *statement) mayFail(reason string) bool {
	return tolerated.MatchString(reason) || st.kind == "unrepeatable" && unrepeatable.MatchString(reason) || st.fails && strings.Contains(reason, "no such row")
}

// truth is what the tables hold.
type truth struct {
	rows   map[int64][]string           // by statement: table and id of each row
	landed map[string]map[string]string // by job: table to snapshot
}

// check compares what clients were told with the jobs, and both with the tables.
func (s *stage) check(jobs []*schedulerv1.Job) {
	s.l.mu.Lock()
	wrong := slices.Clone(s.l.wrong)
	words, yes, of := slices.Clone(s.l.words), maps.Clone(s.l.cancelled), maps.Clone(s.l.jobs)
	s.l.mu.Unlock()
	for _, c := range wrong {
		s.wrong(c.statement, "%s", c.text)
	}
	byID := map[string]*schedulerv1.Job{}
	for _, j := range jobs {
		byID[j.GetJobId()] = j
		if of[j.GetJobId()] == nil {
			if st := s.statementOf(j); st != nil { // nobody was told of it: the answer to its submission was lost
				of[j.GetJobId()] = st
			}
		}
	}
	for _, w := range words {
		j := byID[w.job]
		if j.GetState() != w.state {
			s.wrong(w.statement, "its client was told that job %s is %s; it is %s", w.job, client.StateName(w.state), client.StateName(j.GetState()))
		}
	}
	for id := range yes {
		if byID[id].GetState() != cancelled {
			s.wrong(of[id], "a cancel of job %s was answered with yes; it is %s", id, client.StateName(byID[id].GetState()))
		}
	}
	tr := s.read()
	for _, st := range s.list {
		s.checkStatement(st, byID, of, tr)
	}
	for _, w := range words {
		if w.snapshot != "" && w.snapshot != "(null)" && tr.landed[w.job][w.statement.table] != w.snapshot {
			s.wrong(w.statement, "its client was told of snapshot %s; job %s is in snapshots %v", w.snapshot, w.job, tr.landed[w.job])
		}
		if w.rows != "" && w.rows != "(null)" && w.rows != strconv.Itoa(len(w.statement.ids)) {
			s.wrong(w.statement, "its client was told of %s rows, want %d", w.rows, len(w.statement.ids))
		}
	}
}

func (s *stage) checkStatement(st *statement, byID map[string]*schedulerv1.Job, of map[string]*statement, tr truth) {
	landed := 0
	for id, owner := range of {
		if owner != st {
			continue
		}
		j := byID[id]
		switch {
		case j == nil:
			s.wrong(st, "job %s is not known any more", id)
		case j.GetState() == successful && st.fails:
			s.wrong(st, "job %s succeeded with wrong data", id)
		case j.GetState() == successful && st.table != "":
			landed++
			if len(tr.landed[id]) != 1 {
				s.wrong(st, "job %s is successful; it is in %d snapshots", id, len(tr.landed[id]))
			}
		case j.GetState() != successful && len(tr.landed[id]) > 0:
			s.wrong(st, "job %s is %s; it is in snapshots %v", id, client.StateName(j.GetState()), tr.landed[id])
		case j.GetState() == cancelled && st.cancel < 0 && st.kind != "session":
			s.wrong(st, "job %s is cancelled, and nobody has asked for that", id)
		case j.GetState() == failed && !st.mayFail(j.GetError().GetMessage()):
			s.wrong(st, "job %s failed: %s: %s", id, j.GetError().GetCode(), j.GetError().GetMessage())
		}
	}
	if landed > 1 {
		s.wrong(st, "%d of its jobs succeeded", landed)
	}
	var want []string
	if landed > 0 {
		for _, id := range st.ids {
			want = append(want, fmt.Sprintf("%s %d", st.table, id))
		}
	}
	got := tr.rows[int64(st.n)]
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		s.wrong(st, "tables hold %d rows of it, want %d: %v", len(got), len(want), difference(got, want))
	}
}

// difference is part of what is in one list and not in the other.
func difference(a, b []string) []string {
	n := map[string]int{}
	for _, x := range a {
		n[x]++
	}
	for _, x := range b {
		n[x]--
	}
	var out []string
	for x, k := range n {
		if k != 0 && len(out) < 10 {
			out = append(out, fmt.Sprintf("%s: %+d", x, k))
		}
	}
	return out
}

var number = regexp.MustCompile(`SELECT (\d+) AS job|CAST\((\d+) AS BIGINT\) AS job|-- (\d+)$|INTO lake\.c\.s(\d+) FROM`)

// statementOf finds a job's statement by its text.
func (s *stage) statementOf(j *schedulerv1.Job) *statement {
	m := number.FindStringSubmatch(j.GetStatement())
	if m == nil {
		return nil
	}
	n, err := strconv.Atoi(strings.Join(m[1:], ""))
	if err != nil || n >= len(s.list) {
		return nil
	}
	return s.list[n]
}

// targets are the tables that statements write to.
func (s *stage) targets() []string {
	var out []string
	for _, st := range s.list {
		if st.table != "" && !slices.Contains(out, st.table) {
			out = append(out, st.table)
		}
	}
	return out
}

// read reads all tables, past Signet.
func (s *stage) read() truth {
	tr := truth{rows: map[int64][]string{}, landed: map[string]map[string]string{}}
	for _, name := range s.targets() {
		tab := s.Table("c", name)
		if !tab.Exists {
			continue
		}
		for _, f := range tab.Files {
			jobs, ids := harness.Int64s(s.t, f, "job"), harness.Int64s(s.t, f, "id")
			for i := range jobs {
				tr.rows[jobs[i]] = append(tr.rows[jobs[i]], fmt.Sprintf("%s %d", name, ids[i]))
			}
		}
		markers, units := map[string]bool{}, 0
		for _, m := range tab.Markers {
			marker, _, _ := strings.Cut(m, ":")
			if markers[marker] {
				s.t.Errorf("table %s has marker %s twice", name, marker)
			}
			markers[marker] = true
		}
		for _, snap := range tab.Metadata.Snapshots() {
			id := strconv.FormatInt(snap.SnapshotID, 10)
			props := snap.Summary.Properties
			for job := range strings.SplitSeq(props["signet.job-ids"], ",") {
				if tr.landed[job] == nil {
					tr.landed[job] = map[string]string{}
				}
				if other := tr.landed[job][name]; other != "" {
					s.t.Errorf("job %s is in snapshots %s and %s of table %s", job, other, id, name)
				}
				tr.landed[job][name] = id
			}
			for marker := range strings.SplitSeq(props["signet.markers"], ",") { // jobs that were committed together have one each
				units++
				if !slices.Contains(tab.Markers, marker+":"+id) {
					s.t.Errorf("table %s does not list marker %s of snapshot %s: %v", name, marker, id, tab.Markers)
				}
			}
		}
		if len(tab.Markers) != units {
			s.t.Errorf("table %s lists %d markers, and its %d snapshots have %d", name, len(tab.Markers), tab.Snapshots, units)
		}
	}
	return tr
}

// awaitClean waits for the clean-up: no data file that no table refers to, and nothing of an attempt on executors.
func (s *stage) awaitClean() {
	var left []string
	if !harness.Soon(harness.Patience, func() bool { left = s.unclean(); return len(left) == 0 }) {
		for _, path := range left {
			s.t.Errorf("not cleaned up: %s%s", path, s.ownerOf(path))
		}
	}
}

func (s *stage) unclean() []string {
	var out []string
	known := map[string]bool{}
	for _, name := range append(s.targets(), "facts", "names") {
		for _, f := range s.Table("c", name).Files {
			known[f] = true
		}
	}
	_ = filepath.WalkDir(filepath.Join(s.Dir, "warehouse"), func(path string, d os.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err): // removed meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir(), known[path]:
		case strings.HasSuffix(path, ".metadata.json"), strings.HasSuffix(path, ".avro"), strings.HasSuffix(path, "version-hint.text"):
			// Of a scheduler that died right before the swap, or while it removed them: orphan removal's work, as documented.
		default:
			out = append(out, path)
		}
		return nil
	})
	for _, pattern := range []string{"scratch-*/signet-*/*-*-*-*-*", "scratch-*/signet-*/*/*.parquet", "scratch-*/signet-*/outputs/*/*.parquet"} {
		found, _ := filepath.Glob(filepath.Join(s.Dir, pattern)) // the patterns are valid
		out = append(out, found...)
	}
	return out
}

// leftovers are what processes that have ended in order must not leave.
func (s *stage) leftovers() []string {
	var out []string
	for _, pattern := range []string{"tmp/*", "scratch-*/*", "data/plugins/*", "data/results/*", "data/roots/*"} {
		found, _ := filepath.Glob(filepath.Join(s.Dir, pattern)) // the patterns are valid
		out = append(out, found...)
	}
	return out
}
