package iceberg

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// intent is what a write is to do besides adding files.
type intent struct {
	mode      sinkv1.WriteMode
	scope     *planv1.Scope
	changes   planv1.RowChanges
	operation string
	isolation string
	sequence  int64 // of the snapshot that is read
	warnings  []string

	adds       bool // files that are there already
	checkPaths bool // none of which the table has
	names      []*planv1.FieldNames

	picked *meta.Snapshot // WRITE_MODE_PICK
}

// rowOperations are the statements that change rows.
var rowOperations = []string{"delete", "update", "merge"}

func newIntent(m *meta.Metadata, schema *meta.Schema, req *sinkv1.PrepareWriteRequest) (intent, error) {
	in := intent{mode: req.GetMode(), scope: req.GetScope()}
	if err := in.addFiles(m, req.GetAddFiles()); err != nil {
		return in, err
	}
	if in.mode == sinkv1.WriteMode_WRITE_MODE_APPEND {
		in.scope = nil
		return in, nil
	}
	if in.mode == sinkv1.WriteMode_WRITE_MODE_PICK {
		return in, in.pick(m, req.GetPick())
	}
	if m.FormatVersion == 1 {
		return in, errors.New("it has format version 1, and only version 2 and above can remove files safely; upgrade it (ALTER TABLE ... SET TBLPROPERTIES ('format-version'='2'))")
	}
	head, err := m.Branch(req.GetBranch())
	if err != nil {
		return in, err
	}
	if head != nil {
		in.sequence = head.SequenceNumber
	}
	switch in.mode {
	case sinkv1.WriteMode_WRITE_MODE_OVERWRITE:
		return in, in.overwrite(schema)
	case sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		return in, in.rowLevel(m, schema, req.GetOperation())
	}
	in.scope, in.changes = nil, planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE
	switch in.operation = strings.ToLower(req.GetOperation()); {
	case in.mode != sinkv1.WriteMode_WRITE_MODE_REWRITE, in.operation == "", in.operation == operationManifests:
		return in, nil
	}
	return in, fmt.Errorf("rewrite of %q: it must be manifests, or empty for data files", req.GetOperation())
}

func (in *intent) overwrite(schema *meta.Schema) error {
	switch k := in.scope.GetKind().(type) {
	case *planv1.Scope_All:
		if k.All {
			return nil
		}
	case *planv1.Scope_Partitions:
		if k.Partitions {
			return nil
		}
	case *planv1.Scope_Filter:
		_, err := filter.New(schema, k.Filter)
		return err
	}
	return errors.New("an overwrite that does not say what it removes")
}

// rowLevel chooses how changed rows are stored, by the table's properties and version.
func (in *intent) rowLevel(m *meta.Metadata, schema *meta.Schema, operation string) error {
	if in.operation = strings.ToLower(operation); !slices.Contains(rowOperations, in.operation) {
		return fmt.Errorf("row-level operation %q: it must be delete, update or merge", operation)
	}
	if f := in.scope.GetFilter(); f != nil {
		if _, err := filter.New(schema, f); err != nil {
			return err
		}
	} else {
		in.scope = nil
	}
	key := "write." + in.operation + ".mode"
	in.changes = planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE
	switch mode := strings.ToLower(strings.TrimSpace(m.Properties[key])); mode {
	case "", "copy-on-write":
	case "merge-on-read":
		if in.changes = planv1.RowChanges_ROW_CHANGES_POSITION_DELETES; m.FormatVersion >= 3 {
			in.changes = planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS
		}
	default:
		in.warn(key, m.Properties[key], "it must be copy-on-write or merge-on-read")
	}
	key = "write." + in.operation + ".isolation-level"
	in.isolation = serializable
	switch level := strings.ToLower(strings.TrimSpace(m.Properties[key])); level {
	case "", serializable:
	case snapshotOnly:
		in.isolation = snapshotOnly
	default:
		in.warn(key, m.Properties[key], "it must be serializable or snapshot")
	}
	return nil
}

func (in *intent) warn(key, text, why string) {
	in.warnings = append(in.warnings, fmt.Sprintf("table property %s=%s is not honoured: %s", key, text, why))
}
