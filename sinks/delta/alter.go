package delta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

// AlterTable implements sdk.TableAlterer: it plans the changes on the table as it is, and again after each conflict.
func (s *Sink) AlterTable(ctx context.Context, req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error) {
	attempts := int(req.GetMaxAttempts())
	if attempts < 1 {
		attempts = defaultAttempts
	}
	for n := 1; ; n++ {
		resp, err := s.alter(ctx, req)
		switch {
		case err == nil || !errors.Is(err, sdk.ErrConflict) && !errors.Is(err, sdk.ErrRetryable):
			return resp, err
		case n >= attempts:
			return nil, fmt.Errorf("gave up after %d attempts: %w", n, err)
		}
		if err := s.pause(ctx, n); err != nil {
			return nil, err
		}
	}
}

func (s *Sink) alter(ctx context.Context, req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error) {
	ref := req.GetTable()
	t, err := s.existing(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := log.CheckWrite(t.Protocol, t.Metadata); err != nil {
		return nil, permanent(ref, err)
	}
	a, err := newAlteration(&t.Metadata, req.GetAgain())
	if err != nil {
		return nil, permanent(ref, err)
	}
	for _, c := range req.GetChanges() {
		if err := a.change(c); err != nil {
			return nil, permanent(ref, err)
		}
	}
	tx, err := a.transaction(t.Snapshot)
	if err != nil {
		return nil, permanent(ref, err)
	}
	resp := &sinkv1.AlterTableResponse{Version: versionOf(t.Version), Location: t.location, Warnings: a.warnings, Unchanged: tx == nil}
	if tx == nil || req.GetDryRun() {
		return resp, nil
	}
	version, err := s.put(ctx, t, tx)
	if err != nil {
		return nil, refused(ref, err)
	}
	resp.Version, resp.Location = versionOf(version), t.store.uri(log.CommitName(version))
	return resp, nil
}

// alteration collects what the changes of one statement make of a table.
type alteration struct {
	schema     *schema.Schema
	properties map[string]string
	partition  []string
	again      bool // the changes may have been made before
	operation  transaction.Operation
	operations int
	warnings   []string
}

func newAlteration(m *log.Metadata, again bool) (*alteration, error) {
	s, err := schema.Parse(m.SchemaString)
	a := &alteration{schema: s, properties: maps.Clone(m.Configuration), partition: m.PartitionColumns, again: again}
	if a.properties == nil {
		a.properties = map[string]string{}
	}
	return a, err
}

// Why Delta refuses what would need a feature that is not supported.
const needsMapping = "Delta needs column mapping (delta.columnMapping.mode) for that, which Signet does not support"

func (a *alteration) change(c *sinkv1.Change) error {
	a.operations++
	switch k := c.GetKind().(type) {
	case *sinkv1.Change_AddColumn:
		return a.addColumn(k.AddColumn)
	case *sinkv1.Change_ChangeColumn:
		return a.changeColumn(k.ChangeColumn)
	case *sinkv1.Change_SetProperties:
		return a.setProperties(k.SetProperties.GetProperties())
	case *sinkv1.Change_UnsetProperties:
		return a.unsetProperties(k.UnsetProperties)
	case *sinkv1.Change_DropColumn:
		if k.DropColumn.GetIfExists() && a.find(k.DropColumn.GetPath()) == nil {
			return nil
		}
		return fmt.Errorf("column %s cannot be dropped: %s", schema.PathString(k.DropColumn.GetPath()), needsMapping)
	case *sinkv1.Change_RenameColumn:
		return fmt.Errorf("column %s cannot be renamed: %s", schema.PathString(k.RenameColumn.GetPath()), needsMapping)
	case *sinkv1.Change_AddPartitionField, *sinkv1.Change_DropPartitionField, *sinkv1.Change_ReplacePartitionField:
		return errors.New("the partitioning of a Delta table cannot be changed; make it anew with CREATE OR REPLACE TABLE … PARTITIONED BY … AS SELECT")
	case *sinkv1.Change_SetSort:
		return errors.New("Delta tables have no sort order") //nolint:staticcheck // a proper name
	}
	return errors.New("Delta tables have no branches, no tags, and no snapshots to be set, picked or expired") //nolint:staticcheck // a proper name
}

// find gives the field of a path; nil: there is none.
func (a *alteration) find(path []string) *schema.Field {
	fields := a.schema.Fields
	var f *schema.Field
	for i, name := range path {
		j := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == name })
		if j < 0 {
			j = slices.IndexFunc(fields, func(f schema.Field) bool { return strings.EqualFold(f.Name, name) })
		}
		if j < 0 {
			return nil
		}
		if f, fields = &fields[j], fields[j].Type.Fields; f.Type.Kind != schema.Struct && i < len(path)-1 {
			return nil
		}
	}
	return f
}

func (a *alteration) addColumn(c *sinkv1.AddColumn) error {
	path := append(slices.Clone(c.GetParent()), c.GetField().GetName())
	name := schema.PathString(path)
	fields := &a.schema.Fields
	if len(c.GetParent()) > 0 {
		parent := a.find(c.GetParent())
		if parent == nil || parent.Type.Kind != schema.Struct {
			return fmt.Errorf("column %s: the table has no struct %s", name, schema.PathString(c.GetParent()))
		}
		fields = &parent.Type.Fields
	}
	added, err := defineSchema([]*planv1.Field{c.GetField()})
	if err != nil {
		return err
	}
	f := added.Fields[0]
	if there := a.find(path); there != nil {
		if c.GetIfNotExists() || a.again && there.Type.Equal(f.Type) {
			return nil
		}
		return fmt.Errorf("column %s exists already", name)
	}
	if !f.Nullable {
		return fmt.Errorf("column %s: a column that is added has no values in the rows that are there, so that it cannot be NOT NULL", name)
	}
	at := len(*fields)
	switch {
	case c.GetFirst():
		at = 0
	case c.GetAfter() != "":
		i := slices.IndexFunc(*fields, func(f schema.Field) bool { return strings.EqualFold(f.Name, c.GetAfter()) })
		if i < 0 {
			return fmt.Errorf("column %s: there is no column %s after which it could be", name, c.GetAfter())
		}
		at = i + 1
	}
	*fields = slices.Insert(*fields, at, f)
	a.operation = transaction.Operation{Name: "ADD COLUMNS", Parameters: map[string]string{"columns": fmt.Sprintf("[%q]", name)}}
	return nil
}

func (a *alteration) changeColumn(c *sinkv1.ChangeColumn) error {
	name := schema.PathString(c.GetPath())
	f := a.find(c.GetPath())
	switch {
	case f == nil:
		return fmt.Errorf("the table has no column %s", name)
	case c.GetType() != nil:
		return fmt.Errorf("column %s: its type cannot be changed: Delta needs the table feature typeWidening for that, which Signet does not write", name)
	case c.GetRequired():
		return fmt.Errorf("column %s: SET NOT NULL: Delta cannot make a column NOT NULL that may hold NULLs", name)
	case c.GetWriteDefault() != nil || c.GetDropDefault():
		return fmt.Errorf("column %s: a default needs the table feature allowColumnDefaults, which is not supported", name)
	case c.GetFirst() || c.GetAfter() != "":
		return fmt.Errorf("column %s: columns of Delta tables are found by name; SELECT them in the order that is wanted", name)
	}
	if c.GetOptional() {
		f.Nullable = true
	}
	if c.Doc != nil {
		if err := f.SetComment(c.GetDoc()); err != nil {
			return err
		}
	}
	a.operation = transaction.Operation{Name: "CHANGE COLUMN", Parameters: map[string]string{"column": name}}
	return nil
}

func (a *alteration) setProperties(set map[string]string) error {
	if err := checkProperties(set); err != nil {
		return err
	}
	maps.Copy(a.properties, set)
	a.operation = transaction.SetProperties(set)
	return nil
}

func (a *alteration) unsetProperties(c *sinkv1.UnsetProperties) error {
	for _, key := range c.GetNames() {
		if reserved(key) || strings.HasPrefix(key, "delta.") && checks[key] == nil {
			return fmt.Errorf("property %s cannot be unset by Signet", key)
		}
		if _, ok := a.properties[key]; !ok && !c.GetIfExists() && !a.again {
			return fmt.Errorf("property %s is not set; UNSET TBLPROPERTIES IF EXISTS does nothing then", key)
		}
		delete(a.properties, key)
	}
	a.operation = transaction.UnsetProperties(c.GetNames(), c.GetIfExists())
	return nil
}

// transaction is what the changes come to; nil: the table is so already.
func (a *alteration) transaction(t *log.Snapshot) (*transaction.Transaction, error) {
	if err := a.schema.CheckNames(); err != nil {
		return nil, oneLine(err)
	}
	m := t.Metadata
	m.SchemaString, m.Configuration = a.schema.String(), a.properties
	if was, err := schema.Parse(t.Metadata.SchemaString); err == nil && was.String() == m.SchemaString {
		m.SchemaString = t.Metadata.SchemaString // byte for byte
	}
	p, upgrades, err := transaction.Protocol(&t.Protocol, &m)
	if err != nil {
		return nil, err
	}
	if !upgrades && m.SchemaString == t.Metadata.SchemaString && maps.Equal(m.Configuration, t.Metadata.Configuration) {
		return nil, nil
	}
	_, warnings := fileRules(m.Configuration)
	a.warnings = append(a.warnings, warnings...)
	if a.operations > 1 {
		a.operation = transaction.Operation{Name: "ALTER TABLE", Parameters: map[string]string{}}
	}
	tx := &transaction.Transaction{Base: t, Operation: a.operation, Metadata: &m, EngineInfo: engine()}
	if upgrades {
		tx.Protocol = &p
		a.warnings = append(a.warnings, fmt.Sprintf("readers of the table need version %d now, and writers version %d with %s", p.MinReaderVersion, p.MinWriterVersion, strings.Join(p.WriterFeatures, ", ")))
	}
	return tx, nil
}
