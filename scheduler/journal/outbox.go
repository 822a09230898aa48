package journal

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Outgoing is something to be told to others, written in the transaction of what it tells of. It stays until it has been told.
type Outgoing struct {
	Place uint64          `json:"place"` // in the order of writing
	To    string          `json:"to"`    // which receiver
	Job   string          `json:"job"`
	Body  json.RawMessage `json:"body"`
	// Path are values for the placeholders of the receiver's address.
	Path map[string]string `json:"path,omitempty"`
}

// OnCommit has f called when the transaction is durable.
func (t *Tx) OnCommit(f func()) { t.tx.OnCommit(f) }

func outgoingKey(to string, place uint64) []byte {
	return be.AppendUint64(append([]byte(to), 0), place)
}

// PutOutgoing appends to what is to be told to a receiver.
func (t *Tx) PutOutgoing(o *Outgoing) error {
	o.Place = lastOutgoing(t.tx.Bucket(bucketOutbox).Cursor(), o.To) + 1
	return put(t, bucketOutbox, outgoingKey(o.To, o.Place), o)
}

// lastOutgoing is 0 if there is none. The bucket's own sequence would begin anew in a rewritten file.
func lastOutgoing(c *bolt.Cursor, to string) uint64 {
	k, _ := c.Seek(append([]byte(to), 1))
	if k == nil {
		k, _ = c.Last()
	} else {
		k, _ = c.Prev()
	}
	if n := len(to) + 1; len(k) == n+8 && string(k[:n]) == to+"\x00" {
		return be.Uint64(k[n:])
	}
	return 0
}

// Outgoing reads up to most of what is to be told to a receiver, oldest first.
func (t *Tx) Outgoing(to string, most int) ([]*Outgoing, error) {
	var out []*Outgoing
	prefix := append([]byte(to), 0)
	c := t.tx.Bucket(bucketOutbox).Cursor()
	for k, b := c.Seek(prefix); k != nil && len(out) < most && len(k) == len(prefix)+8 && string(k[:len(prefix)]) == string(prefix); k, b = c.Next() {
		content, err := unseal(bucketOutbox, k, b)
		if err != nil {
			return nil, err
		}
		o, err := decode[Outgoing](bucketOutbox, k, content)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// DropOutgoing forgets what has been told.
func (t *Tx) DropOutgoing(list []*Outgoing) error {
	for _, o := range list {
		if err := t.tx.Bucket(bucketOutbox).Delete(outgoingKey(o.To, o.Place)); err != nil {
			return fmt.Errorf("outgoing %d: %w", o.Place, err)
		}
	}
	return nil
}
