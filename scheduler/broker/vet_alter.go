package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/fault"
)

// alterMembers are the updates that a lease which alters a table may send, with their members. None of them moves the table, gives it another
// identity, or adds data.
var alterMembers = map[string][]string{
	"upgrade-format-version": {"action", "format-version"},
	"add-schema":             {"action", "schema", "last-column-id"},
	"set-current-schema":     {"action", "schema-id"},
	"add-spec":               {"action", "spec"},
	"set-default-spec":       {"action", "spec-id"},
	"add-sort-order":         {"action", "sort-order"},
	"set-default-sort-order": {"action", "sort-order-id"},
	"set-properties":         {"action", "updates"},
	"remove-properties":      {"action", "removals"},
	"set-snapshot-ref":       {"action", "ref-name", "type", "snapshot-id", "max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"},
	"remove-snapshot-ref":    {"action", "ref-name"},
	"remove-snapshots":       {"action", "snapshot-ids"},
}

// alterRequest is a request that changes a table's metadata, parsed as far as it is vetted.
type alterRequest struct {
	requirements, updates json.RawMessage

	assertUUID string
	pinned     map[string]*int64 // references that are pinned, by name
	actions    []string
	version    int
	set        map[string]string
	removed    []string // properties
	refs       []snapshotRef
	dropped    []string // references
	expired    []int64
}

// parseAlter refuses whatever it does not understand completely.
func parseAlter(requirements, updates []byte) (*alterRequest, error) {
	r := &alterRequest{pinned: map[string]*int64{}, set: map[string]string{}}
	var err error
	if r.requirements, err = parseList(requirements, r.addRequirement); err != nil {
		return nil, invalid("requirements: %v", err)
	}
	if r.updates, err = parseList(updates, r.addUpdate); err != nil {
		return nil, invalid("updates: %v", err)
	}
	return r, nil
}

func (r *alterRequest) addRequirement(doc json.RawMessage) error {
	kind, m, err := kindOf(doc, "type", requirementMembers)
	if err != nil {
		return err
	}
	switch kind {
	case "assert-create":
		return fmt.Errorf("%s is not allowed when a table is altered", kind)
	case "assert-table-uuid":
		if r.assertUUID != "" {
			return fmt.Errorf("%s stands twice", kind)
		}
		_, err = member(m, "uuid", &r.assertUUID)
	case "assert-ref-snapshot-id":
		var name string
		if _, err = member(m, "ref", &name); err != nil {
			return err
		}
		var id int64
		ok, err := member(m, "snapshot-id", &id)
		if err != nil {
			return err
		}
		r.pinned[name] = nil
		if ok {
			r.pinned[name] = &id
		}
	}
	return err
}

func (r *alterRequest) addUpdate(doc json.RawMessage) error {
	kind, m, err := kindOf(doc, "action", alterMembers)
	if err != nil {
		return err
	}
	if kind != "set-snapshot-ref" && kind != "remove-snapshot-ref" && slices.Contains(r.actions, kind) {
		return fmt.Errorf("%s stands twice", kind)
	}
	r.actions = append(r.actions, kind)
	switch kind {
	case "upgrade-format-version":
		_, err = member(m, "format-version", &r.version)
	case "set-properties":
		_, err = member(m, "updates", &r.set)
	case "remove-properties":
		_, err = member(m, "removals", &r.removed)
	case "set-snapshot-ref":
		var ref snapshotRef
		err = json.Unmarshal(doc, &ref)
		r.refs = append(r.refs, ref)
	case "remove-snapshot-ref":
		var name string
		_, err = member(m, "ref-name", &name)
		r.dropped = append(r.dropped, name)
	case "remove-snapshots":
		_, err = member(m, "snapshot-ids", &r.expired)
	}
	return err
}

// alterTable vets a request of a lease that alters, and sends it. No seal is taken: the request adds no job's rows, and sent twice it comes out
// the same. The sink finds out what became of one whose answer was lost.
func (l *Lease) alterTable(ctx context.Context, reqs, upds []byte) (*landing, error) {
	if err := l.mayDefine(l.spec.AllowAlter, "alter"); err != nil {
		return nil, err
	}
	r, err := parseAlter(reqs, upds)
	if err != nil {
		return nil, err
	}
	t, err := l.served(ctx)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, refuse(kindNotFound, "table %s does not exist", l.spec.Ident)
	}
	if err := l.vetAlter(t, r); err != nil {
		return nil, err
	}
	if len(r.expired) > 0 && l.spec.BeforeExpire != nil {
		if err := l.spec.BeforeExpire(t, r.expired); err != nil {
			return nil, l.b.explain(l, "alter table", err)
		}
	}
	if err := fault.Hit("broker.alter.before"); err != nil {
		return nil, l.b.explain(l, "alter table", fmt.Errorf("%w: %w", catalog.ErrNotSent, err))
	}
	// Not ended by the plugin: a request that is cut in the middle has no answer.
	now, err := l.spec.Catalog.Commit(context.WithoutCancel(ctx), l.spec.Ident, r.requirements, r.updates)
	if err == nil {
		err = fault.Hit("broker.alter.after")
	}
	if err != nil {
		return nil, l.b.explain(l, "alter table", alterOutcome(err))
	}
	l.mu.Lock()
	l.last, l.missing = now, now == nil
	l.mu.Unlock()
	at := &landing{}
	if now != nil {
		at.location = now.MetadataLocation
		if s := now.Metadata.CurrentSnapshot(); s != nil {
			at.version = strconv.FormatInt(s.SnapshotID, 10)
		}
	}
	return at, nil
}

// alterOutcome gives every error of a catalog its kind: what is not known to be definite is unknown.
func alterOutcome(err error) error {
	for _, def := range []error{catalog.ErrNotFound, catalog.ErrPermanent, catalog.ErrConflict} {
		if errors.Is(err, def) {
			return err
		}
	}
	if errors.Is(err, catalog.ErrNotSent) {
		return errors.Join(refuse(kindRetryable, "nothing was sent to the catalog"), err)
	}
	return errors.Join(refuse(kindUnknown, "no definite answer from the catalog"), err)
}

// vetAlter checks a request against the table as it was last served.
func (l *Lease) vetAlter(t *catalog.Table, r *alterRequest) error {
	md := t.Metadata
	switch {
	case !sameUUID(r.assertUUID, t.UUID):
		return invalid("assert-table-uuid must be %s", t.UUID)
	case l.tableUUID() != "" && !sameUUID(l.tableUUID(), t.UUID):
		return refuse(kindPermanent, "table %s was dropped and created again since", l.spec.Ident)
	case len(r.actions) == 0:
		return invalid("a request without updates")
	case r.version != 0 && (r.version <= md.Version() || r.version > 3):
		return invalid("format version %d: the table has %d, and versions go up to 3", r.version, md.Version())
	}
	if err := l.vetAlterProperties(t, r); err != nil {
		return err
	}
	return vetAlterRefs(md, r)
}

func (l *Lease) vetAlterProperties(t *catalog.Table, r *alterRequest) error {
	for _, k := range r.removed {
		if strings.HasPrefix(k, markerPrefix) {
			return invalid("property %q is the record of what was committed, and stays", k)
		}
	}
	return l.vetTableProperties(r.set, t.Location)
}

// markerPrefix begins the property of every cluster's markers.
const markerPrefix = "signet.landed."

// vetAlterRefs keeps main where there is one, and every snapshot that a reference needs.
func vetAlterRefs(md table.Metadata, r *alterRequest) error {
	pins := map[string]int64{} // as the request leaves them
	for name, ref := range md.Refs() {
		pins[name] = ref.SnapshotID
	}
	for _, name := range r.dropped {
		if name == mainBranch {
			return invalid("the main branch is the table and stays")
		}
		delete(pins, name)
	}
	for _, ref := range r.refs {
		switch {
		case ref.Name == "" || (ref.Type != "branch" && ref.Type != "tag") || (ref.Name == mainBranch && ref.Type != "branch"):
			return invalid("set-snapshot-ref of %q as %q", ref.Name, ref.Type)
		case md.SnapshotByID(ref.SnapshotID) == nil:
			return invalid("set-snapshot-ref %q: the table has no snapshot %d", ref.Name, ref.SnapshotID)
		}
		if _, ok := r.pinned[ref.Name]; !ok {
			return invalid("%q is moved without assert-ref-snapshot-id", ref.Name)
		}
		pins[ref.Name] = ref.SnapshotID
	}
	if cur := md.CurrentSnapshot(); cur != nil {
		if _, ok := pins[mainBranch]; !ok {
			pins[mainBranch] = cur.SnapshotID
		}
	}
	for name, id := range pins {
		if slices.Contains(r.expired, id) {
			return invalid("snapshot %d is where %q points to, and cannot be removed", id, name)
		}
	}
	return nil
}
