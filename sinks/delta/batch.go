package delta

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/delta/log"
)

// markerApp is what the appId of a job's txn action begins with; the marker follows.
const markerApp = "signet:"

// batch is what one Commit call makes visible. It does not change between attempts.
type batch struct {
	req      *sinkv1.CommitRequest
	plan     *plan
	markers  []string
	refs     []*sinkv1.StagedRef
	adds     []*log.Add // of the references, without statistics but numRecords
	replaced []replaced
	rows     int64
	deleted  int64
	updated  int64
	user     map[string]string // summary properties that users gave
}

func newBatch(req *sinkv1.CommitRequest) (*batch, error) {
	p, err := readPlan(req.GetSpec())
	if err != nil {
		return nil, err
	}
	b := &batch{req: req, plan: p, user: map[string]string{}}
	switch {
	case len(req.GetUnits()) == 0:
		return nil, errors.New("a commit without units")
	case p.Mode != req.GetMode() || !slices.Contains(supported, p.Mode):
		return nil, fmt.Errorf("%w: write mode %s, prepared was %s", errState, req.GetMode(), p.Mode)
	case p.GetCreatesTable() != (p.Mode == sinkv1.WriteMode_WRITE_MODE_CREATE), (p.Define == nil) == (p.GetCreatesTable() || p.Mode == sinkv1.WriteMode_WRITE_MODE_REPLACE):
		return nil, fmt.Errorf("%w: write mode %s with another definition", errState, p.Mode)
	case len(req.GetUnits()) > 1 && p.Mode != sinkv1.WriteMode_WRITE_MODE_APPEND:
		return nil, errors.New("a commit that does more than append takes one job")
	}
	seen, raw := map[string]string{}, []byte(nil)
	for _, u := range req.GetUnits() {
		if err := b.unit(u, seen, &raw); err != nil {
			return nil, fmt.Errorf("job %s: %w", u.GetJobId(), err)
		}
	}
	return b, nil
}

func (b *batch) unit(u *sinkv1.Unit, seen map[string]string, raw *[]byte) error {
	if u.GetMarker() == "" || slices.Contains(b.markers, u.GetMarker()) {
		return fmt.Errorf("marker %q is empty or comes twice", u.GetMarker())
	}
	b.markers = append(b.markers, u.GetMarker())
	var got sinkv1.Totals
	for _, in := range u.GetRefs() {
		h, adds, err := readRef(b.plan, u.GetJobId(), in, raw)
		if err != nil {
			return err
		}
		for _, a := range adds {
			if other, twice := seen[a.Path]; twice {
				return fmt.Errorf("file %s is there twice, of job %s too", a.Path, other)
			}
			seen[a.Path] = u.GetJobId()
		}
		b.refs, b.adds, b.replaced = append(b.refs, in), append(b.adds, adds...), append(b.replaced, h.Replaced...)
		got.Files, got.Rows, got.Bytes, got.ReplacedFiles = got.Files+h.Files, got.Rows+h.Rows, got.Bytes+h.Bytes, got.ReplacedFiles+int64(len(h.Replaced))
		for _, r := range h.Replaced {
			got.DeletedRows, got.UpdatedRows = got.DeletedRows+r.Deleted, got.UpdatedRows+r.Updated
		}
	}
	if want := u.GetTotals(); want != nil && (want.GetFiles() != got.Files || want.GetRows() != got.Rows || want.GetBytes() != got.Bytes || want.GetReplacedFiles() != got.ReplacedFiles ||
		want.GetDeletedRows() != got.DeletedRows || want.GetUpdatedRows() != got.UpdatedRows) {
		return fmt.Errorf("its references hold %v; the unit says %v", &got, want)
	}
	b.rows, b.deleted, b.updated = b.rows+got.Rows, b.deleted+got.DeletedRows, b.updated+got.UpdatedRows
	for k, v := range u.GetProperties() {
		b.user[k] = v
	}
	return nil
}

// nothing reports whether the commit would change nothing. What overwrites remove is only found out at the table.
func (b *batch) nothing() bool {
	if len(b.adds) > 0 || len(b.replaced) > 0 || b.plan.Define != nil {
		return false
	}
	return !b.plan.overwrites() || b.plan.GetScope().GetPartitions()
}

// what names the statement in messages.
func (b *batch) what() string {
	switch b.plan.Mode {
	case sinkv1.WriteMode_WRITE_MODE_OVERWRITE:
		return "overwrite"
	case sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "replacement"
	case sinkv1.WriteMode_WRITE_MODE_REWRITE:
		return "rewrite"
	case sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		return strings.ToLower(b.plan.Operation)
	}
	return "append"
}
