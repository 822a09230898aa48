package flightrows

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
)

// Ticket is the handle of a result's rows.
type Ticket struct {
	Sealed  []byte // what the scheduler reads
	Attempt string // what an executor reads: whose output it is; empty: no executor has it
	Secret  string // and what gives access to it
}

// Forms of a handle, its first byte.
const (
	formSealed = 0
	formKept   = 1
)

// Encode makes the handle.
func (t Ticket) Encode() []byte {
	if t.Attempt == "" {
		return append([]byte{formSealed}, t.Sealed...)
	}
	b := binary.AppendUvarint([]byte{formKept}, uint64(len(t.Sealed)))
	b = append(b, t.Sealed...)
	return append(b, t.Attempt+"\x00"+t.Secret...)
}

// ErrTicket is a handle that is none.
var ErrTicket = errors.New("no handle of rows")

// Decode reads a handle. It says nothing about whether the handle is worth anything.
func Decode(b []byte) (Ticket, error) {
	if len(b) == 0 {
		return Ticket{}, ErrTicket
	}
	form, b := b[0], b[1:]
	switch form {
	case formSealed:
		return Ticket{Sealed: b}, nil
	case formKept:
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) { //nolint:gosec // size is at most the length
			return Ticket{}, ErrTicket
		}
		sealed, rest := b[size:size+int(n)], string(b[size+int(n):]) //nolint:gosec // at most the length
		attempt, secret, ok := strings.Cut(rest, "\x00")
		if !ok || attempt == "" || secret == "" {
			return Ticket{}, ErrTicket
		}
		return Ticket{Sealed: sealed, Attempt: attempt, Secret: secret}, nil
	}
	return Ticket{}, ErrTicket
}

// Secret is what clients are given in place of an output's own ticket, with which more could be had.
func Secret(ticket string) string {
	sum := sha256.Sum256([]byte("signet flight rows\x00" + ticket))
	return hex.EncodeToString(sum[:])
}
