package rest

import (
	"crypto/rand"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/request"
)

// idempotencyKey is what a server tells repetitions by. A request that adds a snapshot, or makes a table of a new UUID, is the only one of its content:
// its key is made of that, so that whoever repeats it, in another process even, has the same. Any other request might rightly come twice (a property
// that is set to A, to B, and to A again), and the server must not answer the second with what it said to the first: each call has a key of its own.
// Keys are UUIDs of version 7.
func idempotencyKey(id catalog.Ident, req *request.Request, body []byte) string {
	var bits [16]byte
	at := time.Now().UnixMilli()
	if req.Snapshots() > 0 || req.UUID() != "" {
		h := sha256.New()
		for _, part := range id {
			h.Write([]byte(part + "\x00"))
		}
		h.Write(body)
		copy(bits[:], h.Sum(nil))
		at = 0
		for _, f := range req.Facts {
			if f.Snapshot != nil {
				at = f.Snapshot.Timestamp
			}
		}
	} else {
		_, _ = rand.Read(bits[:]) // never fails
	}
	for i := range 6 {
		bits[i] = byte(at >> (8 * (5 - i)))
	}
	bits[6], bits[8] = bits[6]&0x0f|0x70, bits[8]&0x3f|0x80
	return uuid.UUID(bits).String()
}
