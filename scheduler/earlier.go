package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// roster is the file that says which executors may come back to a scheduler that restarts. Nothing depends on it but how long that one waits: where it
// is missing or wrong, attempts are waited for in vain, or run again although their executors live.
type roster struct {
	path string

	mu      sync.Mutex
	entries map[string]rosterEntry
	earlier map[string]bool // of the last incarnation, and not back yet
	known   bool            // the file was there
}

type rosterEntry struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

func openRoster(dir string) *roster {
	r := &roster{path: filepath.Join(dir, "executors.json"), entries: map[string]rosterEntry{}, earlier: map[string]bool{}}
	b, err := os.ReadFile(r.path)
	if err != nil || json.Unmarshal(b, &r.entries) != nil || r.entries == nil {
		r.entries = map[string]rosterEntry{}
		return r
	}
	r.known = true
	for id := range r.entries {
		r.earlier[id] = true
	}
	return r
}

// joined is called once the jobs have heard of what the executor has.
func (r *roster) joined(id, host string, pid int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.earlier, id)
	r.entries[id] = rosterEntry{host, pid}
	return r.write()
}

func (r *roster) left(ids ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.entries, id)
		delete(r.earlier, id)
	}
	return r.write()
}

func (r *roster) write() error {
	b, err := json.Marshal(r.entries)
	if err != nil {
		return err
	}
	tmp := r.path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, r.path)
}

// missing are the executors of the last incarnation that are not back and may still come: those of other machines, and those of this one whose
// processes live. ok is false where nobody knows who there was.
func (r *roster) missing() (n int, ok bool) {
	host, err := os.Hostname()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.earlier {
		if e := r.entries[id]; err != nil || e.Host != host || alive(e.PID) {
			n++
		}
	}
	return n, r.known
}

// forget gives up those that have not come back.
func (r *roster) forget() error {
	r.mu.Lock()
	ids := make([]string, 0, len(r.earlier))
	for id := range r.earlier {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	return r.left(ids...)
}

// alive tells whether there is a process with the id. One that has ended and is not waited for counts as gone.
func alive(pid int) bool {
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true // another system, which has no such files
	}
	_, rest, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z")) && !bytes.HasPrefix(rest, []byte("X"))
}

// lookAgain is how often a restarted scheduler looks for processes that have ended.
const lookAgain = 50 * time.Millisecond

// awaitEarlier returns when every executor of the last incarnation is back or can not come back any more, and at the latest after the grace time.
func (s *Server) awaitEarlier() {
	limit := time.NewTimer(s.adoptGrace())
	defer limit.Stop()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		if n, known := s.roster.missing(); known && n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			if err := s.roster.forget(); err != nil {
				s.log.Warn("the list of executors cannot be written; a restart will wait longer than it has to", "error", err)
			}
			return
		case <-s.ctx.Done():
			return
		}
	}
}
