package iceberg

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// landable says why files that were written by the plan cannot become part of the table as it is now.
func (b *batch) landable(t *table) error {
	p := b.plan
	if err := writable(t.Metadata); err != nil {
		return err
	}
	if t.FormatVersion != int(p.GetFormatVersion()) && (p.GetFormatVersion() == 1 || t.FormatVersion < int(p.GetFormatVersion())) {
		return fmt.Errorf("its format version was %d when the job was planned and is %d now; run the job again", p.GetFormatVersion(), t.FormatVersion)
	}
	if p.GetRowChanges() == planv1.RowChanges_ROW_CHANGES_POSITION_DELETES && t.FormatVersion >= 3 {
		return fmt.Errorf("its format version was %d when the job was planned and is %d now, which has deletion vectors in place of position delete files; run the job again", p.GetFormatVersion(), t.FormatVersion)
	}
	written, err := t.Schema(p.GetSchemaId())
	if err != nil {
		return err
	}
	if written == nil || !proto.Equal(&planv1.Schema{Fields: written.Fields}, &planv1.Schema{Fields: p.schema.Fields}) {
		return fmt.Errorf("schema %d, for which the files were written, has been removed or replaced; run the job again", p.GetSchemaId())
	}
	spec, err := t.Spec(p.GetSpecId())
	if err != nil {
		return err
	}
	if spec == nil || !spec.Equal(p.partition) {
		return fmt.Errorf("partition spec %d, for which the files were written, has been removed or replaced; run the job again", p.GetSpecId())
	}
	if t.CurrentSchemaID == p.GetSchemaId() || b.files == 0 { // what only removes files leaves none behind that could lack a column
		return nil
	}
	current, err := t.CurrentSchema()
	if err != nil {
		return err
	}
	return requiredColumns(written, current, b.free, "after the job was planned", "run the job again")
}

// requiredColumns finds a column that may not be NULL in the current schema and that is, or may be, NULL in the files that were written under another. free
// says of which fields that is known not to be so; when and remedy are for the message.
func requiredColumns(written, current *meta.Schema, free func(*meta.Node) bool, when, remedy string) error {
	var err error
	current.Walk(func(n *meta.Node) {
		if err != nil || !n.Field.GetRequired() {
			return
		}
		was := written.Node(n.Field.GetId())
		switch {
		case was == nil && addedBelowOptional(n, written, current):
		case was == nil && current.HasInitialDefault(n.Field.GetId()):
		case was == nil:
			err = fmt.Errorf("column %s was added as required %s, and the files lack it; %s", n.Path, when, remedy)
		case was.Field.GetRequired() || free(was):
		default:
			err = fmt.Errorf("column %s was made required %s, and the files may hold NULLs in it; %s", n.Path, when, remedy)
		}
	})
	return err
}

// addedBelowOptional reports whether the field came with an optional column, which is NULL in the files as a whole.
func addedBelowOptional(n *meta.Node, written, current *meta.Schema) bool {
	for p := current.Node(n.Parent); p != nil; p = current.Node(p.Parent) {
		if written.Node(p.Field.GetId()) != nil {
			return false
		}
		if !p.Field.GetRequired() || current.HasInitialDefault(p.Field.GetId()) {
			return true
		}
	}
	return false
}

// free reports whether the files are known to hold no NULL in the field: a struct is never NULL where one of its fields never is.
func (b *batch) free(n *meta.Node) bool {
	if n.Repeated {
		return false
	}
	if n.Leaf() {
		return !b.nulls[n.Field.GetId()]
	}
	if n.Field.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT {
		return false
	}
	for _, f := range n.Field.GetType().GetFields() {
		if b.free(b.plan.schema.Node(f.GetId())) {
			return true
		}
	}
	return false
}
