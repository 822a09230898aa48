package delta

import (
	"context"
	"fmt"
	"strings"
	"time"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/sinks/delta/log"
)

// defaultRetention is how long removed files stay, if the table does not say (delta.deletedFileRetentionDuration).
const defaultRetention = 7 * 24 * time.Hour

// Maintain implements sdk.Maintainer. Of the files below the table it proposes those that are neither live nor removed so lately that readers of older versions may need
// them. Whatever begins with _ or a dot is left alone, but for directories of partitions, as Delta's own VACUUM does.
func (s *Sink) Maintain(ctx context.Context, req *sinkv1.MaintainRequest, send func(*sinkv1.MaintainResponse) error) error {
	ref := req.GetTable()
	t, err := s.existing(ctx, ref)
	if err != nil {
		return err
	}
	// What is not known of a table may name files.
	if err := log.CheckWrite(t.Protocol, t.Metadata); err != nil {
		return permanent(ref, err)
	}
	retention, err := retentionOf(t.Snapshot)
	if err != nil {
		return permanent(ref, err)
	}
	since := req.GetUnnamedSinceMillis()
	if since == 0 {
		since = s.now().Add(-retention).UnixMilli()
	}
	needed, err := t.needed(since)
	if err != nil {
		return permanent(ref, err)
	}
	all, err := t.store.host.List(ctx, t.location)
	if err != nil {
		return err
	}
	msg := &sinkv1.MaintainResponse{Version: versionOf(t.Version), TableUuid: t.Metadata.ID, RetentionMillis: retention.Milliseconds()}
	for _, o := range all {
		name, below := t.store.name(o)
		if !below || hidden(name, t.Metadata.PartitionColumns) || needed[uri.Key(o.GetUri())] || o.GetMtimeMillis() >= min(req.GetOlderThanMillis(), since) {
			continue
		}
		if len(msg.GetProposals()) == historyBatch {
			if err := send(msg); err != nil {
				return err
			}
			msg = &sinkv1.MaintainResponse{}
		}
		msg.Proposals = append(msg.Proposals, proposal(o))
	}
	return send(msg)
}

func proposal(o *hostv1.ObjectInfo) *sinkv1.Proposal {
	return &sinkv1.Proposal{Uri: o.GetUri(), SizeBytes: o.GetSize(), MtimeMillis: o.GetMtimeMillis(), Reason: "no version of the table that is kept names it"}
}

// needed are the keys of the URIs of what the version has, and of what was removed since a time.
func (t *table) needed(since int64) (map[string]bool, error) {
	out := map[string]bool{}
	sc := &scan{table: t}
	add := func(path string, v *log.DeletionVector) error {
		out[uri.Key(resolve(t.location, path))] = true
		if v == nil {
			return nil
		}
		d, err := sc.deletes(v)
		if err != nil {
			return fmt.Errorf("data file %s: %w", path, err)
		}
		if d.GetPath() != "" {
			out[uri.Key(d.GetPath())] = true
		}
		return nil
	}
	for a := range t.Files() {
		if err := add(a.Path, a.DeletionVector); err != nil {
			return nil, err
		}
	}
	for m := range t.Tombstones() {
		if m.DeletionTimestamp != nil && *m.DeletionTimestamp < since {
			continue
		}
		if err := add(m.Path, m.DeletionVector); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hidden reports whether a name is none of the table's data: a directory or a file of it begins with _ or a dot, and is no partition's.
func hidden(name string, columns []string) bool {
	segments := strings.Split(name, "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "_") && !strings.HasPrefix(s, ".") {
			continue
		}
		partition := false
		for _, c := range columns {
			partition = partition || i < len(segments)-1 && strings.HasPrefix(s, c+"=")
		}
		if s == "_change_data" || !partition {
			return true
		}
	}
	return false
}

// retentionOf is for how long the table wants removed files to be kept.
func retentionOf(t *log.Snapshot) (time.Duration, error) {
	text, ok := t.Metadata.Configuration[propDeletedRetention]
	if !ok {
		return defaultRetention, nil
	}
	d, ok := parseInterval(text)
	if !ok {
		return 0, fmt.Errorf("property %s=%s is not understood: %w", propDeletedRetention, text, isInterval(text))
	}
	return d, nil
}
