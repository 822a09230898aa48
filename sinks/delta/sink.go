package delta

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
)

// Version is written to commitInfo.engineInfo. The linker may set it.
var Version = "0.1.0"

// Sink implements sdk.Sink. It keeps nothing but a cache of snapshots, and is safe for concurrent use.
type Sink struct {
	tables *cache
	now    func() time.Time                 // replaced in tests
	pause  func(context.Context, int) error // before attempt n+1
}

var (
	_ sdk.Sink           = (*Sink)(nil)
	_ sdk.TableCreator   = (*Sink)(nil)
	_ sdk.TableDescriber = (*Sink)(nil)
	_ sdk.TableAlterer   = (*Sink)(nil)
	_ sdk.ScanPlanner    = (*Sink)(nil)
	_ sdk.Historian      = (*Sink)(nil)
	_ sdk.Maintainer     = (*Sink)(nil)
)

// New returns a sink.
func New() *Sink { return &Sink{tables: newCache(), now: time.Now, pause: backoff} }

// Describe implements sdk.Sink.
func (s *Sink) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "delta", Version: Version, CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE,
		Creates:      []string{log.Dir + "/*.json", log.Dir + "/*.checkpoint.parquet"},
		CommitPoints: []string{log.Dir + "/*.json"},
		Hints:        []string{log.Hint},
		Capabilities: []sinkv1.Capability{
			sinkv1.Capability_CAPABILITY_CREATE_AS_SELECT, sinkv1.Capability_CAPABILITY_GROUP_COMMIT, sinkv1.Capability_CAPABILITY_OVERWRITE,
			sinkv1.Capability_CAPABILITY_ROW_LEVEL, sinkv1.Capability_CAPABILITY_REWRITE, sinkv1.Capability_CAPABILITY_REPLACE_TABLE, sinkv1.Capability_CAPABILITY_ADD_FILES,
		},
		Summary: "Delta tables: create, append, overwrite, change rows, read",
	}
}

// table is a table as one load found it.
type table struct {
	*log.Snapshot
	store    *store
	location string
	missing  bool
}

// load brings the newest snapshot of the table: the cached one with what has been committed since, or one that is read from the log.
func (s *Sink) load(ctx context.Context, ref *sinkv1.TableRef) (*table, error) {
	if err := hit("delta.load.before"); err != nil {
		return nil, err
	}
	host := sdk.HostFrom(ctx)
	location, err := host.Location(ctx)
	if err != nil {
		return nil, err
	}
	location = strings.TrimRight(location, "/")
	if location == "" {
		return nil, sdk.Refuse(sdk.Permanent, "table %s: the host does not say where it is", tableName(ref))
	}
	t := &table{store: &store{host: host, location: location}, location: location}
	t.Snapshot, err = s.newest(ctx, t.store)
	switch {
	case errors.Is(err, log.ErrNoTable):
		t.missing, err = true, nil
	case err != nil:
		err = logError(ref, err)
	}
	return t, err
}

// newest takes the cached snapshot if the log still is the one that it was read from. A table that was dropped and created anew, and a log whose old files were
// removed behind the snapshot, would otherwise be mistaken for one to which nothing has been added.
func (s *Sink) newest(ctx context.Context, st *store) (*log.Snapshot, error) {
	if c, ok := s.tables.get(st.location); ok {
		switch tag, err := st.tag(ctx, c.snapshot.Version); {
		case err == nil && tag == c.tag:
			next, commits, err := c.snapshot.Advance(ctx, st)
			if err == nil && len(commits) > 0 {
				err = s.remember(ctx, st, next)
			}
			return next, err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		s.tables.drop(st.location)
	}
	snapshot, err := log.Load(ctx, st, log.LoadOptions{})
	if err == nil {
		err = s.remember(ctx, st, snapshot)
	}
	return snapshot, err
}

// remember caches a snapshot with the tag of its commit file. Without that file it cannot be told later whether the log is the same, so that it is not kept.
func (s *Sink) remember(ctx context.Context, st *store, snapshot *log.Snapshot) error {
	tag, err := st.tag(ctx, snapshot.Version)
	if errors.Is(err, fs.ErrNotExist) {
		s.tables.drop(st.location)
		return nil
	}
	if err == nil {
		s.tables.put(st.location, cached{snapshot, tag})
	}
	return err
}

// existing is load for calls that need the table to be there.
func (s *Sink) existing(ctx context.Context, ref *sinkv1.TableRef) (*table, error) {
	t, err := s.load(ctx, ref)
	if err == nil && t.missing {
		err = sdk.Refuse(sdk.NotFound, "table %s does not exist: there is no Delta log in %s", tableName(ref), t.location)
	}
	return t, err
}

// logError makes what is wrong with a log final, and leaves the host's errors as they are.
func logError(ref *sinkv1.TableRef, err error) error {
	if errors.Is(err, log.ErrCorrupt) || errors.Is(err, log.ErrUnsupported) {
		return permanent(ref, err)
	}
	return fmt.Errorf("table %s: %w", tableName(ref), err)
}

func tableName(ref *sinkv1.TableRef) string {
	parts := append([]string{ref.GetCatalog()}, ref.GetNamespace()...)
	return strings.Join(append(parts, ref.GetName()), ".")
}

// permanent makes an error final, with the table's name in front.
func permanent(ref *sinkv1.TableRef, err error) error {
	return sdk.Refuse(sdk.Permanent, "table %s: %v", tableName(ref), err)
}

// versionOf is a log version as the host's messages carry it.
func versionOf(v int64) string { return strconv.FormatInt(v, 10) }

// hit passes a fault point before which nothing was sent.
func hit(point string) error {
	if err := fault.Hit(point); err != nil {
		return sdk.Refuse(sdk.Retryable, "%v", err)
	}
	return nil
}
