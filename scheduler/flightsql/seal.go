package flightsql

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"time"

	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"

	"github.com/signet-io/signet/internal/flightrows"
)

// sealer makes handles that only this process reads: they say which job they are for, whose it is, and until when. Nothing is kept here, and
// nobody can guess or change one.
type sealer struct {
	aead cipher.AEAD
	now  func() time.Time
}

func newSealer() *sealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return &sealer{aead: aead, now: time.Now}
}

// Kinds of handle: one is not taken for the other.
const (
	kindTicket = "ticket" // the rows of a job that has ended
	kindPoll   = "poll"   // a job to poll for
)

type sealed struct {
	Kind    string `json:"k"`
	Job     string `json:"j"`
	Expires int64  `json:"e"` // Unix milliseconds
}

func (s *sealer) make(kind, principal, job string, expires time.Time) []byte {
	text, _ := json.Marshal(sealed{Kind: kind, Job: job, Expires: expires.UnixMilli()}) // plain strings
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(nonce, nonce, text, []byte(principal))
}

// open tells the job of a handle.
func (s *sealer) open(kind, principal string, handle []byte) (job string, ok bool) {
	n := s.aead.NonceSize()
	if len(handle) < n {
		return "", false
	}
	text, err := s.aead.Open(nil, handle[:n], handle[n:], []byte(principal))
	if err != nil {
		return "", false
	}
	var h sealed
	if err := json.Unmarshal(text, &h); err != nil || h.Kind != kind || s.now().UnixMilli() > h.Expires {
		return "", false
	}
	return h.Job, true
}

// ticket is the handle of a job's rows in the form that clients hand to DoGet. at is where executors have them; nil: here.
func (s *server) ticket(principal, job string, expires time.Time, at *Location) ([]byte, error) {
	t := flightrows.Ticket{Sealed: s.seal.make(kindTicket, principal, job, expires)}
	if at != nil {
		t.Attempt, t.Secret = at.Attempt, at.Secret
	}
	return fsql.CreateStatementQueryTicket(t.Encode())
}

// openTicket tells the job of a ticket.
func (s *server) openTicket(principal string, handle []byte) (job string, ok bool) {
	t, err := flightrows.Decode(handle)
	if err != nil {
		return "", false
	}
	return s.seal.open(kindTicket, principal, t.Sealed)
}
