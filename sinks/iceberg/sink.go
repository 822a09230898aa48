package iceberg

import (
	"context"
	"fmt"
	"strings"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Version is written to snapshot summaries as engine-version. The linker may set it.
var Version = "0.1.0"

// Engine is written to snapshot summaries as engine-name.
const Engine = "signet"

// Sink implements sdk.Sink. It keeps nothing but caches, and is safe for concurrent use.
type Sink struct {
	tables *cache[*meta.Metadata]           // by metadata location
	lists  *cache[[]icefile.Manifest]       // by URI of the manifest list
	now    func() time.Time                 // replaced in tests
	pause  func(context.Context, int) error // before attempt n+1
}

var (
	_ sdk.Sink           = (*Sink)(nil)
	_ sdk.TableCreator   = (*Sink)(nil)
	_ sdk.TableDropper   = (*Sink)(nil)
	_ sdk.TableDescriber = (*Sink)(nil)
	_ sdk.TableAlterer   = (*Sink)(nil)
	_ sdk.ScanPlanner    = (*Sink)(nil)
)

// New returns a sink.
func New() *Sink {
	return &Sink{tables: newCache[*meta.Metadata](32), lists: newCache[[]icefile.Manifest](32), now: time.Now, pause: backoff}
}

// Describe implements sdk.Sink.
func (s *Sink) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "iceberg", Version: Version, CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_CATALOG, Creates: []string{"metadata/*.avro"},
		Capabilities: []sinkv1.Capability{
			sinkv1.Capability_CAPABILITY_CREATE_AS_SELECT, sinkv1.Capability_CAPABILITY_GROUP_COMMIT, sinkv1.Capability_CAPABILITY_OVERWRITE,
			sinkv1.Capability_CAPABILITY_ROW_LEVEL, sinkv1.Capability_CAPABILITY_REWRITE, sinkv1.Capability_CAPABILITY_PICK, sinkv1.Capability_CAPABILITY_BRANCHES,
			sinkv1.Capability_CAPABILITY_ADD_FILES,
			sinkv1.Capability_CAPABILITY_REPLACE_TABLE,
		},
		Summary: "Apache Iceberg tables of format versions 2 and 3: create, append, overwrite, change rows, read",
	}
}

// table is a table as one load found it.
type table struct {
	*meta.Metadata
	location        string // of the metadata
	missing         bool
	defaultLocation string
}

// load loads the table. With fresh it takes nothing from the cache.
func (s *Sink) load(ctx context.Context, h Host, ref *sinkv1.TableRef, fresh bool) (*table, error) {
	if err := hit("iceberg.load.before"); err != nil {
		return nil, err
	}
	var known string
	key := tableName(ref)
	var cached *meta.Metadata
	if !fresh {
		known, cached, _ = s.tables.latest(key)
	}
	location, raw, missing, defaultLocation, err := h.LoadTable(ctx, known)
	switch {
	case err != nil:
		return nil, err
	case missing:
		s.tables.drop(key)
		return &table{missing: true, defaultLocation: strings.TrimRight(defaultLocation, "/")}, nil
	case raw == nil && known != "" && location == known:
		return &table{Metadata: cached, location: location}, nil
	}
	m, err := meta.Parse(raw)
	if err != nil {
		return nil, sdk.Refuse(sdk.Permanent, "table %s: %v", key, err)
	}
	s.tables.put(key, location, m)
	return &table{Metadata: m, location: location}, nil
}

// existing is load for calls that need the table to be there.
func (s *Sink) existing(ctx context.Context, h Host, ref *sinkv1.TableRef) (*table, error) {
	t, err := s.load(ctx, h, ref, false)
	if err == nil && t.missing {
		err = sdk.Refuse(sdk.NotFound, "table %s does not exist", tableName(ref))
	}
	return t, err
}

func tableName(ref *sinkv1.TableRef) string {
	parts := append([]string{ref.GetCatalog()}, ref.GetNamespace()...)
	return strings.Join(append(parts, ref.GetName()), ".")
}

// permanent makes an error final, with the table's name in front.
func permanent(ref *sinkv1.TableRef, err error) error {
	return sdk.Refuse(sdk.Permanent, "table %s: %v", tableName(ref), err)
}

// hit passes a fault point before which nothing was sent.
func hit(point string) error {
	if err := fault.Hit(point); err != nil {
		return sdk.Refuse(sdk.Retryable, "%v", err)
	}
	return nil
}

// metadataPath is the URI of an object beside the table's metadata.
func metadataPath(location, format string, args ...any) string {
	return strings.TrimRight(location, "/") + "/metadata/" + fmt.Sprintf(format, args...)
}
