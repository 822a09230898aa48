package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// addFiles makes a write spec one of an append that registers files which are there already.
func (in *intent) addFiles(m *meta.Metadata, add *sinkv1.AddFiles) (err error) {
	if add == nil {
		return nil
	}
	if in.mode != sinkv1.WriteMode_WRITE_MODE_APPEND {
		return fmt.Errorf("files are added by appends, not by write mode %s", in.mode)
	}
	in.adds, in.checkPaths = true, add.GetCheckDuplicates()
	if text := m.Properties[meta.NameMapping]; text != "" {
		in.names, err = meta.ParseNameMapping(text)
	}
	return err
}

// mapNames sets the table's name mapping where files without field ids are added to a table that has none, so that every reader finds their columns.
func (b *batch) mapNames(base *meta.Metadata, props map[string]string) error {
	if !b.byName {
		return nil
	}
	now := base.Properties[meta.NameMapping]
	if now == "" && len(b.plan.GetNames()) == 0 {
		if base.CurrentSchemaID != b.plan.GetSchemaId() {
			return errors.New("its columns have changed since the files were checked, and the files have no field ids; run the statement again")
		}
		text, err := nameMapping(b.plan.schema.Fields)
		if err == nil {
			props[meta.NameMapping] = text
		}
		return err
	}
	// Another writer may have set it meanwhile: to what this one would, or to something under which the files were not checked.
	want := b.plan.GetNames()
	if len(want) == 0 {
		want = namesOf(b.plan.schema.Fields, nil)
	}
	got, err := meta.ParseNameMapping(now)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(got, want, func(a, b *planv1.FieldNames) bool { return proto.Equal(a, b) }) {
		return fmt.Errorf("its property %s has changed since the files were checked, and says what their columns are; run the statement again", meta.NameMapping)
	}
	return nil
}

// mappedName is a field of a name mapping.
type mappedName struct {
	ID     int32        `json:"field-id"`
	Names  []string     `json:"names"`
	Fields []mappedName `json:"fields,omitempty"`
}

// nameMapping gives every field its own name.
func nameMapping(fields []*planv1.Field) (string, error) {
	var of func([]*planv1.Field) []mappedName
	of = func(fields []*planv1.Field) []mappedName {
		out := make([]mappedName, len(fields))
		for i, f := range fields {
			out[i] = mappedName{ID: f.GetId(), Names: []string{f.GetName()}, Fields: of(f.GetType().GetFields())}
		}
		return out
	}
	b, err := json.Marshal(of(fields))
	return string(b), err
}

// namesOf is nameMapping as it is read back.
func namesOf(fields []*planv1.Field, out []*planv1.FieldNames) []*planv1.FieldNames {
	for _, f := range fields {
		out = append(out, &planv1.FieldNames{FieldId: f.GetId(), Names: []string{f.GetName()}})
		out = namesOf(f.GetType().GetFields(), out)
	}
	return out
}

// pathKey makes the spellings of one file equal.
func pathKey(file string) string { return uri.Key(file) }

// checkPaths refuses files that the table has already. Manifests never change: those that an earlier attempt has read are not read again.
func (a *attempt) checkPaths(ctx context.Context, manifests []icefile.Manifest) error {
	b := a.batch
	if !b.plan.CheckPaths {
		return nil
	}
	if b.paths == nil {
		if err := b.ownPaths(ctx, a.host); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var twice []string
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	seen := maps.Clone(b.looked)
	for _, m := range manifests {
		if m.Content != icefile.ContentData || seen[m.Path] {
			continue
		}
		seen[m.Path] = true
		g.Go(func() error {
			raw, err := a.host.Get(gctx, m.Path)
			if err != nil {
				return fmt.Errorf("read Iceberg manifest %s: %w", m.Path, err)
			}
			err = icefile.ReadFiles(raw, false, func(e *icefile.Entry) error {
				if e.Status == icefile.StatusDeleted || !b.paths[pathKey(e.Path)] {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				twice = append(twice, e.Path)
				return nil
			})
			if err != nil {
				return sdk.Refuse(sdk.Permanent, "Iceberg manifest %s: %v", m.Path, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(twice) > 0 {
		slices.Sort(twice)
		more := ""
		if n := len(twice) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more of those that are added", n)
		}
		if b.pick != nil {
			return permanent(b.req.GetTable(), fmt.Errorf("the main branch has the data file %s of snapshot %d already%s: its rows would be there twice", twice[0], b.pick.ID, more))
		}
		return permanent(b.req.GetTable(), fmt.Errorf("it has the data file %s already%s; leave them out, or say check_duplicates = false to have their rows twice", twice[0], more))
	}
	b.looked = seen
	return nil
}

// ownPaths reads back which files are added.
func (b *batch) ownPaths(ctx context.Context, h Host) error {
	paths := map[string]bool{}
	for _, r := range b.refs {
		raw := r.Inline
		if len(raw) == 0 {
			var err error
			if raw, err = h.Get(ctx, r.Path); err != nil {
				return fmt.Errorf("read Iceberg manifest %s: %w", r.Path, err)
			}
		}
		if err := icefile.ReadFiles(raw, false, func(e *icefile.Entry) error {
			paths[pathKey(e.Path)] = true
			return nil
		}); err != nil {
			return permanent(b.req.GetTable(), fmt.Errorf("staged manifest %s: %w", r.Path, err))
		}
	}
	b.paths, b.looked = paths, map[string]bool{}
	return nil
}
