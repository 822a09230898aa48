package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// Tx gives access to the records inside Update or View.
type Tx struct{ tx *bolt.Tx }

const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is over the record's place as well: a record that is read from where it was not written is damage.
func sum(bucket, key, content []byte) uint32 {
	s := crc32.Update(0, castagnoli, bucket)
	s = crc32.Update(s, castagnoli, []byte{0})
	s = crc32.Update(s, castagnoli, key)
	s = crc32.Update(s, castagnoli, []byte{0})
	return crc32.Update(s, castagnoli, content)
}

// seal is a record as it is stored.
func seal(bucket, key, content []byte) []byte {
	out := make([]byte, 0, len(content)+sumSize)
	return binary.LittleEndian.AppendUint32(append(out, content...), sum(bucket, key, content))
}

// unseal gives a stored record's content, which lies in the map still.
func unseal(bucket, key, stored []byte) ([]byte, error) {
	n := len(stored) - sumSize
	if n < 0 || sum(bucket, key, stored[:n]) != binary.LittleEndian.Uint32(stored[n:]) {
		return nil, fmt.Errorf("%w: %s record %q has a wrong checksum", ErrDamaged, bucket, key)
	}
	return stored[:n], nil
}

func (t *Tx) store(bucket, key, content []byte) error {
	return t.tx.Bucket(bucket).Put(key, seal(bucket, key, content))
}

// read is ErrMissing if there is no such record.
func (t *Tx) read(bucket, key []byte) ([]byte, error) {
	b := t.tx.Bucket(bucket).Get(key)
	if b == nil {
		return nil, ErrMissing
	}
	return unseal(bucket, key, b)
}

func put(t *Tx, bucket, key []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.store(bucket, key, b)
}

func get[T any](t *Tx, bucket, key []byte) (*T, error) {
	b, err := t.read(bucket, key)
	if err != nil {
		return nil, err
	}
	return decode[T](bucket, key, b)
}

func decode[T any](bucket, key, b []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%w: %s record %q: %w", ErrDamaged, bucket, key, err)
	}
	return v, nil
}

// scan visits the contents of the records whose keys begin with prefix, in key order.
func (t *Tx) scan(bucket, prefix []byte, f func(key, content []byte) error) error {
	c := t.tx.Bucket(bucket).Cursor()
	for k, b := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, b = c.Next() {
		content, err := unseal(bucket, k, b)
		if err != nil {
			return err
		}
		if err := f(k, content); err != nil {
			return err
		}
	}
	return nil
}

func each[T any](t *Tx, bucket, prefix []byte, f func(*T) error) error {
	return t.scan(bucket, prefix, func(k, b []byte) error {
		v, err := decode[T](bucket, k, b)
		if err != nil {
			return err
		}
		return f(v)
	})
}

// drop removes the records whose keys begin with prefix.
func drop(t *Tx, bucket, prefix []byte) error {
	c := t.tx.Bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Seek(prefix) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}
