package iceberg

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
)

// Kinds of changes.
const (
	changeReplaced  = 1 // a data file that goes
	changeDeletes   = 2 // a delete file that comes
	changePartition = 3 // a partition whose files go
)

// change is one thing that a commit does besides adding data files.
type change struct {
	kind             int64
	path             string
	content          int64 // FileContent
	records          int64
	deleted, updated int64 // rows that the statement deletes and changes
	size             int64
	offset, length   int64 // deletion vectors
	referenced       string
	tuple            []byte   // partitions: tupleKey
	merged           []string // delete files that go, because this one holds their rows
}

// bytes of a delete file: of a deletion vector its own, for one object holds several.
func (c *change) bytes() int64 {
	if c.content == int64(planv1.FileContent_FILE_CONTENT_DELETION_VECTOR) {
		return c.length
	}
	return c.size
}

const changeSchema = `{"type":"record","name":"change","fields":[{"name":"kind","type":"int"},{"name":"path","type":"string"},{"name":"content","type":"int"},` +
	`{"name":"records","type":"long"},{"name":"deleted","type":"long"},{"name":"updated","type":"long"},{"name":"size","type":"long"},{"name":"offset","type":"long"},` +
	`{"name":"length","type":"long"},{"name":"referenced","type":"string"},{"name":"tuple","type":"bytes"},{"name":"merged","type":{"type":"array","items":"string"}}]}`

// changeLog packs changes as they are staged, compressed: a rewrite of a hundred thousand files takes some megabytes.
type changeLog struct {
	out                       *avro.Writer
	n                         int64
	files, bytes              int64 // delete files
	replaced, deleted, update int64
}

func (l *changeLog) add(c *change) error {
	if l.out == nil {
		var err error
		if l.out, err = avro.NewWriter(changeSchema, nil); err != nil {
			return err
		}
	}
	row := avro.AppendLong(l.out.Row(), c.kind)
	row = avro.AppendString(row, c.path)
	for _, n := range []int64{c.content, c.records, c.deleted, c.updated, c.size, c.offset, c.length} {
		row = avro.AppendLong(row, n)
	}
	row = avro.AppendBytes(avro.AppendString(row, c.referenced), c.tuple)
	if len(c.merged) > 0 {
		row = avro.AppendLong(row, int64(len(c.merged)))
		for _, path := range c.merged {
			row = avro.AppendString(row, path)
		}
	}
	row = avro.AppendLong(row, 0)
	l.n++
	switch c.kind {
	case changeReplaced:
		l.replaced++
		l.deleted += c.deleted
		l.update += c.updated
	case changeDeletes:
		l.files++
		l.bytes += c.bytes()
		l.deleted += c.deleted
		l.update += c.updated
	}
	return l.out.Done(row)
}

func (l *changeLog) data() ([]byte, error) {
	data, err := l.out.Bytes()
	return bytes.Clone(data), err
}

// readChanges reads what a changeLog packed.
func readChanges(raw []byte, visit func(*change) error) error {
	f, err := avro.Open(raw)
	if err != nil {
		return err
	}
	return f.Records(func(r *avro.Record) error {
		long := func(name string) int64 { v, _ := r.Get(0, name).(int64); return v }
		text := func(name string) string { v, _ := r.Get(0, name).(string); return v }
		c := &change{
			kind: long("kind"), path: text("path"), content: long("content"), records: long("records"), deleted: long("deleted"), updated: long("updated"),
			size: long("size"), offset: long("offset"), length: long("length"), referenced: text("referenced"),
		}
		c.tuple, _ = r.Get(0, "tuple").([]byte)
		merged, _ := r.Get(0, "merged").([]any)
		for _, v := range merged {
			path, _ := v.(string)
			c.merged = append(c.merged, path)
		}
		return visit(c)
	})
}

// readAll loads what the references say of removed files, delete files and partitions.
func (b *batch) readAll(ctx context.Context, h Host) error {
	if b.changed {
		return nil
	}
	for _, r := range b.logs {
		raw := r.Inline
		if r.Path != "" {
			var err error
			if raw, err = h.Get(ctx, r.Path); err != nil {
				return fmt.Errorf("read staged changes %s: %w", r.Path, err)
			}
		}
		var got changeLog
		err := readChanges(raw, func(c *change) error { return b.change(&got, c) })
		switch {
		case err != nil:
			return permanent(b.req.GetTable(), fmt.Errorf("staged changes %s: %w", r.Path, err))
		case got.replaced != r.ReplacedFiles || got.deleted != r.DeletedRows || got.update != r.UpdatedRows || got.files != r.Files:
			return permanent(b.req.GetTable(), fmt.Errorf("%w: staged changes %s do not add up", errRef, r.Path))
		}
	}
	b.changed = true
	return nil
}

func (b *batch) change(got *changeLog, c *change) error {
	switch c.kind {
	case changeReplaced:
		if _, ok := b.replaced[c.path]; ok || c.path == "" {
			return fmt.Errorf("data file %q is replaced twice", c.path)
		}
		b.replaced[c.path] = c
		got.replaced++
		got.deleted += c.deleted
		got.update += c.updated
	case changeDeletes:
		vector := c.content == int64(planv1.FileContent_FILE_CONTENT_DELETION_VECTOR)
		if len(b.deletes[c.referenced]) > 0 && vector {
			return fmt.Errorf("data file %s gets two deletion vectors", c.referenced)
		}
		b.deletes[c.referenced] = append(b.deletes[c.referenced], c)
		for _, path := range c.merged {
			b.merged[path] = c.referenced
		}
		if vector {
			b.added.vectors++
		} else {
			b.added.positionFiles++
		}
		b.added.bytes += c.bytes()
		b.added.positions += c.records
		got.files++
		got.deleted += c.deleted
		got.update += c.updated
	case changePartition:
		b.written[string(c.tuple)] = true
	default:
		return errors.New("a change of an unknown kind")
	}
	return nil
}
