package sim

import "slices"

// table is a catalog table by the rules of Iceberg: a commit lands if the head is its parent and its sequence number is a new one.
type table struct {
	last  int64 // sequence number
	head  int64 // snapshot of main, 0: none
	log   []int64
	snaps map[int64]*request // nil: somebody else's
}

// request is one job's commit as it is sent, any number of times.
type request struct {
	job, seq int
	table    *table
	id       int64
	parent   int64
	number   int64 // sequence number
	marker   int
	files    []*attempt
}

func newTable() *table { return &table{snaps: map[int64]*request{}} }

func (t *table) commit(id, number int64, r *request) {
	t.log = append(t.log, t.head)
	t.head, t.last = id, number
	t.snaps[id] = r
}

// landable tells whether the request could still land, wherever main may be set.
func (t *table) landable(r *request) bool {
	_, there := t.snaps[r.id]
	return !there && t.last < r.number
}

// arrive is the commit point.
func (w *World) arrive(r *request) bool {
	t := r.table
	if !t.landable(r) || t.head != r.parent {
		return false
	}
	t.commit(r.id, r.number, r)
	w.tracef("snapshot %d of job %d lands", r.id, r.job)
	w.landed(r)
	return true
}

// marked is the snapshot that carries a marker.
func (t *table) marked(marker int) *request {
	var found *request
	for _, r := range t.snaps {
		if r != nil && r.marker == marker && (found == nil || r.id < found.id) {
			found = r
		}
	}
	return found
}

func (w *World) gotRequest(m *message, how Op) {
	reply := *m
	reply.kind = mReply
	switch how {
	case OpDeny:
		reply.never = true
	case OpTwice:
		w.arrive(m.req)
		reply.yes = w.arrive(m.req)
	default:
		reply.yes = w.arrive(m.req)
	}
	w.send(&reply)
}

// others commits for another writer.
func (w *World) others(s Step) bool {
	if s.Job < 1 || s.Job > len(w.tables) {
		return false
	}
	t := w.tables[s.Job-1]
	switch s.Op {
	case OpOther:
		w.nextID++
		t.commit(w.nextID, t.last+1, nil)
	case OpRollback:
		if len(t.log) == 0 {
			return false
		}
		t.head = t.log[len(t.log)-1-min(s.Arg, len(t.log)-1)]
	}
	return true
}

func (r *request) has(a *attempt) bool { return slices.Contains(r.files, a) }
