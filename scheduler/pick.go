package scheduler

import (
	"slices"
	"strconv"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

// Columns of the answer of cherrypick_snapshot and publish_changes, as Iceberg's procedures have them.
const (
	pickSource  = "source_snapshot_id"
	pickCurrent = "current_snapshot_id"
)

// Summary keys of snapshots that are staged, and of those that make their changes once more.
const (
	summaryWapID  = "wap.id"
	summarySource = "source-snapshot-id"
)

// cherryPick is cherrypick_snapshot and publish_changes. Where the snapshot was made on main's head, main moves to it; otherwise a commit, which is
// journalled, sealed and resolved as every other write, makes its changes once more.
func cherryPick(s *Server, j *job, c *procedureCall) error {
	pick := &sinkv1.CherryPick{WapId: c.text("wap_id")}
	if id, ok := c.int("snapshot_id"); ok {
		pick.Snapshot = strconv.FormatInt(id, 10)
	}
	if done, err := s.pickedBefore(j, c.table); done || err != nil {
		return err
	}
	resp, err := s.alter(j, c.table, &sinkv1.AlterTableRequest{Changes: []*sinkv1.Change{{Kind: &sinkv1.Change_CherryPick{CherryPick: pick}}}}, nil)
	if err != nil {
		return err
	}
	if resp.Pick == "" {
		return s.answerFound(j, resp, pickSource, pickCurrent)
	}
	return s.pickSnapshot(j, c.table, pick, resp.Pick)
}

// pickedBefore answers by the job's marker, where a run of it under the same key has landed and its record is lost: the snapshot would be refused as one that
// is published.
func (s *Server) pickedBefore(j *job, t *target) (bool, error) {
	tbl, err := t.entry.catalog.Load(j.ctx, t.ident)
	if err != nil {
		return false, catalogError(err, "table "+t.String())
	}
	found := broker.LandedAt(tbl.Metadata, s.markerProperty(), j.rec.Marker)
	if found == 0 {
		return false, nil
	}
	source := any(nil) // the snapshot may have expired
	if snap := tbl.Metadata.SnapshotByID(found); snap != nil && snap.Summary != nil {
		id, err := strconv.ParseInt(snap.Summary.Properties[summarySource], 10, 64)
		if err != nil {
			return true, fail(codeUser, "use a new key for a new statement", "the idempotency key has committed snapshot %d of table %s, by another statement", found, t)
		}
		source = id
	}
	return true, s.answer(j, []string{pickSource + ":int", pickCurrent + ":int"}, []row{{source, found}})
}

// pickSnapshot has the sink make the changes of a snapshot once more on top of main. No executor has a part in it.
func (s *Server) pickSnapshot(j *job, t *target, asked *sinkv1.CherryPick, id string) error {
	plugin, err := s.steadyPlugin(j.ctx, t)
	if err != nil {
		return err
	}
	if !slices.Contains(plugin.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_PICK) {
		return fail(codeUser, "run the statement that staged it again", "snapshot %s was not made on the head of the main branch of table %s, and the sink %s does not put it on another one", id, t, t.entry.sink)
	}
	p := &planned{target: t, mode: sinkv1.WriteMode_WRITE_MODE_PICK, pick: id}
	if err := s.prepareInsert(j.ctx, j, p); err != nil {
		return err
	}
	if err := s.isAsked(j, p, asked); err != nil {
		return err
	}
	p.explainTaskless("cherry-pick of snapshot " + id)
	return s.runTaskless(j, p)
}

// isAsked holds what the sink makes of a call against what was asked for.
func (s *Server) isAsked(j *job, p *planned, asked *sinkv1.CherryPick) error {
	wrong := func() error {
		return fail(codeInternal, "", "table %s: the sink picks snapshot %q, and that is not the one that was asked for", p.target, p.spec.GetPick())
	}
	if p.spec.GetPick() != p.pick || asked.Snapshot != "" && asked.Snapshot != p.pick {
		return wrong()
	}
	if asked.Snapshot != "" {
		return nil
	}
	id, err := strconv.ParseInt(p.pick, 10, 64)
	if err != nil {
		return wrong()
	}
	tbl, err := p.target.entry.catalog.Load(j.ctx, p.target.ident)
	if err != nil {
		return catalogError(err, "table "+p.target.String())
	}
	snap := tbl.Metadata.SnapshotByID(id)
	switch {
	case snap == nil:
		return fail(codeUser, "run the statement that staged it again", "table %s has no snapshot %d any more", p.target, id)
	case snap.Summary == nil || snap.Summary.Properties[summaryWapID] != asked.WapId:
		return wrong()
	}
	return nil
}

// pickResult is the answer of a commit that has picked a snapshot. m is the machine as it will be.
func (w *writeState) pickResult(m *coordinator.Machine) ([]byte, error) {
	r := row{nil, nil}
	for i, text := range []string{w.spec.GetPick(), m.Result().Version} {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			r[i] = id
		}
	}
	return inlineResult([]string{pickSource + ":int", pickCurrent + ":int"}, []row{r})
}
