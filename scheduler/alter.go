package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// alterAttempts is how many conflicts in a row an ALTER TABLE bears.
const alterAttempts = 50

// alterTable changes a table's metadata in one commit. It carries no marker: what it wants is a state of the table, which can be looked at.
func (s *Server) alterTable(j *job, st *sql.AlterTable) error {
	t, err := s.resolveTable(st.Table.Strings(), j, toAlter)
	if err != nil {
		return err
	}
	if st.RenameTo != nil {
		return s.renameTable(j, st, t)
	}
	for _, c := range st.Changes {
		for name, typ := range map[string]*planv1.Type{
			c.GetAddColumn().GetField().GetName(): c.GetAddColumn().GetField().GetType(), strings.Join(c.GetChangeColumn().GetPath(), "."): c.GetChangeColumn().GetType(),
		} {
			if err := plan.Storable(name, typ); err != nil {
				return fail(codeUser, err.Hint, "table %s: %s", t, err.Message)
			}
		}
	}
	resp, err := s.alter(j, t, &sinkv1.AlterTableRequest{Changes: st.Changes}, nil)
	if other := s.respelt(j.ctx, t, err); other != nil {
		t = other
		resp, err = s.alter(j, t, &sinkv1.AlterTableRequest{Changes: st.Changes}, nil)
	}
	if err != nil {
		if st.IfExists && failed(err, codeNotFound) {
			return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("table %s does not exist", t)}})
		}
		return err
	}
	text := fmt.Sprintf("altered table %s", t)
	if resp.Unchanged {
		text = fmt.Sprintf("table %s is so already", t)
	}
	return s.answer(j, []string{"result"}, []row{{text}})
}

func failed(err error, code string) bool {
	var f *jobFailure
	return errors.As(err, &f) && f.Code == code
}

// alter has the table's sink make the changes. It may be called again after a crash: then what is as the changes would leave it is as good as made.
// edit may widen the lease.
func (s *Server) alter(j *job, t *target, req *sinkv1.AlterTableRequest, edit func(*broker.LeaseSpec)) (resp *sinkv1.AlterTableResponse, err error) {
	req.Table, req.MaxAttempts = t.ref(), alterAttempts
	err = s.overCrashes(j.ctx, "AlterTable", func() error {
		spec := broker.LeaseSpec{JobID: j.id, AllowAlter: !req.DryRun, ReadOnly: req.DryRun}
		if edit != nil {
			edit(&spec)
		}
		lease, sink, err := s.lease(j.ctx, t, spec)
		if err != nil {
			return err
		}
		defer lease.Close()
		if p, err := s.plugin(j.ctx, t); err == nil && !slices.Contains(p.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_ALTER_TABLE) {
			return fail(codeUser, "", "table %s: the sink %s of catalog %s does not alter tables", t, t.entry.sink, t.entry.name)
		}
		req.Lease, req.Again = lease.Token(), j.again
		if resp, err = sink.AlterTable(j.ctx, req); err != nil {
			return s.interrupted(j, s.sinkFailure(j.ctx, t, err))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	j.warn(resp.Warnings...)
	switch {
	case req.DryRun, resp.Pick != "": // a pick is committed as a write
	case !resp.Unchanged:
		j.did(auditAlter, t)
	case j.again: // perhaps by itself, before the restart
		j.did(auditAlter, t, perhaps)
	}
	return resp, nil
}

// renameTable gives a table another name in its catalog. Its files stay where they are.
func (s *Server) renameTable(_ *job, _ *sql.AlterTable, t *target) error {
	return fail(codeUser, "CREATE TABLE AS makes a copy under another name", "table %s: catalog %s does not rename tables", t, t.entry.name)
}
