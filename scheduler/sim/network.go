package sim

import "slices"

// kind of a message.
type kind int

const (
	mLaunch   kind = iota + 1 // scheduler → executor
	mCancel                   // scheduler → executor
	mAck                      // scheduler → executor: a status has arrived
	mVerdict                  // scheduler → executor: answer to a manifest
	mFree                     // scheduler → executor
	mStatus                   // executor → scheduler
	mManifest                 // executor → scheduler
	mRequest                  // broker → catalog
	mReply                    // catalog → broker

	kindCount
)

var kindNames = [kindCount]string{"", "launch", "cancel", "ack", "verdict", "free", "status", "manifest", "request", "reply"}

func (k kind) String() string { return kindNames[k] }

func kindOf(name string) (kind, bool) {
	i := slices.Index(kindNames[:], name)
	return kind(i), i > 0
}

type message struct {
	kind  kind
	job   int
	att   *attempt // nil in requests and replies
	exec  int
	gen   int    // of the executor
	epoch uint64 // of the scheduler that sent it
	yes   bool   // verdict: accepted; status: success; reply: landed
	never bool   // reply: refused for good
	class int32  // status: planv1.ErrorClass
	lost  string // status: the attempt whose output could not be had
	parts []part // launch
	seq   int    // request, reply
	call  int    // manifest, verdict: a call has one answer, and nobody hears it any more when the next one is made
	req   *request
}

func (m *message) step(op Op) Step {
	s := Step{Op: op, Job: m.job, Exec: m.exec, Arg: int(m.kind)}
	switch {
	case m.att != nil:
		s.Att = m.att.n
	default:
		s.Att = m.seq
	}
	return s
}

// maxInFlight bounds the network: beyond it nothing is repeated.
const maxInFlight = 60

func (w *World) send(m *message) { w.net = append(w.net, m) }

// find is the oldest message that a step names.
func (w *World) find(s Step) int {
	k := kind(s.Arg)
	if s.Op == OpTwice || s.Op == OpDeny {
		k = mRequest
	}
	return slices.IndexFunc(w.net, func(m *message) bool {
		n := m.seq
		if m.att != nil {
			n = m.att.n
		}
		return m.kind == k && m.job == s.Job && m.exec == s.Exec && n == s.Att
	})
}

func (w *World) network(s Step) bool {
	i := w.find(s)
	if i < 0 {
		return false
	}
	m := w.net[i]
	switch s.Op {
	case OpLose:
		switch m.kind {
		case mLaunch, mCancel, mAck, mFree:
			w.execs[m.exec].joined = false // only a broken session loses what was sent on it
		case mRequest:
			saw(SawLateRequest)
			w.late = append(w.late, m.req) // nobody can tell a lost request from one that comes very late
		}
		w.net = slices.Delete(w.net, i, i+1)
		return true
	case OpRepeat:
		// Streams do not repeat a launch, nor a connection a request: whoever sends again does so knowingly.
		if m.kind == mLaunch || m.kind == mRequest || len(w.net) > maxInFlight {
			return false
		}
		w.send(m)
		return true
	}
	w.net = slices.Delete(w.net, i, i+1)
	w.deliver(m, s.Op)
	return true
}

func (w *World) deliver(m *message, how Op) {
	switch m.kind {
	case mLaunch, mCancel, mAck, mVerdict, mFree:
		if e := w.execs[m.exec]; e != nil && e.up && e.gen == m.gen {
			e.receive(w, m)
		}
	case mStatus:
		w.gotStatus(m)
	case mManifest:
		w.gotManifest(m)
	case mRequest:
		w.gotRequest(m, how)
	case mReply:
		w.gotReply(m)
	}
}
