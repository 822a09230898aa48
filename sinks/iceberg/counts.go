package iceberg

import (
	"strconv"

	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// counts is what a snapshot adds or removes, as summaries tell it.
type counts struct {
	dataFiles, rows, bytes                int64
	positionFiles, vectors, equalityFiles int64
	positions, equalities                 int64 // deleted rows
}

func (c *counts) add(e *icemanifest.Entry) {
	c.bytes += e.Size
	if e.ContentSize != nil { // one Puffin file holds several vectors: of each only its own bytes
		c.bytes += *e.ContentSize - e.Size
	}
	switch {
	case e.Content == icemanifest.Data:
		c.dataFiles++
		c.rows += e.Records
	case e.Vector():
		c.vectors++
		c.positions += e.Records
	case e.Content == icemanifest.PositionDeletes:
		c.positionFiles++
		c.positions += e.Records
	default:
		c.equalityFiles++
		c.equalities += e.Records
	}
}

// deleteFiles counts all kinds.
func (c *counts) deleteFiles() int64 { return c.positionFiles + c.vectors + c.equalityFiles }

// summaryKeys are the keys of Iceberg's snapshot summaries: of what was added, of what was removed, and the total that both change.
var summaryKeys = []struct {
	added, removed, total string
	of                    func(*counts) int64
	always                bool // the added one is written even if it is zero
}{
	{"added-data-files", "deleted-data-files", "total-data-files", func(c *counts) int64 { return c.dataFiles }, true},
	{"added-records", "deleted-records", "total-records", func(c *counts) int64 { return c.rows }, true},
	{"added-files-size", "removed-files-size", "total-files-size", func(c *counts) int64 { return c.bytes }, true},
	{"added-delete-files", "removed-delete-files", "total-delete-files", (*counts).deleteFiles, false},
	{"added-position-deletes", "removed-position-deletes", "total-position-deletes", func(c *counts) int64 { return c.positions }, false},
	{"added-equality-deletes", "removed-equality-deletes", "total-equality-deletes", func(c *counts) int64 { return c.equalities }, false},
	{"added-position-delete-files", "removed-position-delete-files", "", func(c *counts) int64 { return c.positionFiles }, false},
	{"added-equality-delete-files", "removed-equality-delete-files", "", func(c *counts) int64 { return c.equalityFiles }, false},
	{"added-dvs", "removed-dvs", "", func(c *counts) int64 { return c.vectors }, false},
}

// summarize writes what was added and removed, and the totals as far as the parent says them.
func summarize(out map[string]string, head *meta.Snapshot, added, removed *counts) {
	for _, k := range summaryKeys {
		plus, minus := k.of(added), k.of(removed)
		if k.always || plus > 0 {
			out[k.added] = strconv.FormatInt(plus, 10)
		}
		if minus > 0 {
			out[k.removed] = strconv.FormatInt(minus, 10)
		}
		if k.total == "" {
			continue
		}
		if n, ok := total(head, k.total); ok && n+plus-minus >= 0 {
			out[k.total] = strconv.FormatInt(n+plus-minus, 10)
		}
	}
}
