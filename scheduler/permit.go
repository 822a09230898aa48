package scheduler

import (
	"context"
	"slices"
	"strings"

	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/sql"
)

// What a principal may do in which schema of which catalog is the configuration's word (catalogs.NAME.permissions). Every table that a statement names comes
// from resolveTable, which takes what the statement is about to do, and every list of schemas and tables that anybody sees from visibleSchemas and
// visibleTables. A name is decided by itself, before anything is looked up: whether there is such a table, no refusal tells.

// action is a set of what a statement does to a table or a schema.
type action uint8

const (
	toRead action = 1 << iota
	toInsert
	toAlter
	toCreate
	toDrop
	toMaintain
)

// words are the actions as the configuration has them.
func (a action) words() []string {
	var out []string
	for i, w := range config.Actions() {
		if a&(1<<i) != 0 {
			out = append(out, w)
		}
	}
	return out
}

// allowed tells whether a principal may do all of a in a schema.
func (s *Server) allowed(who string, e *catalogEntry, ns []string, a action) bool {
	c := s.cfg.Catalogs[e.name]
	return !slices.ContainsFunc(a.words(), func(w string) bool { return !c.Allows(who, schemaText(ns), w) })
}

// permit refuses what a principal may not do in a schema. what names the table or schema as it is written.
func (s *Server) permit(who string, e *catalogEntry, ns []string, a action, what string) error {
	if s.allowed(who, e, ns, a) || mutant.On("scheduler/everything-permitted") {
		return nil
	}
	does := strings.Join(a.words(), " and ")
	if a&toInsert != 0 {
		does = strings.Replace(does, config.AllowInsert, config.AllowInsert+" into", 1)
	}
	return fail(codeDenied, "catalogs."+e.name+".permissions in the scheduler's configuration says who may do what", "%s may not %s %s, or it does not exist", who, does, what)
}

// permitTable notes what a job does to a table, if it may.
func (s *Server) permitTable(j *job, t *target, a action) error {
	ns := t.entry.schemaOf(t.ident)
	if err := s.permit(j.owner, t.entry, ns, a, "table "+t.String()); err != nil {
		return err
	}
	t.who, t.does = j.owner, t.does|a
	j.notePermit(t.entry.name, ns, a)
	return nil
}

// notePermit keeps what the job does, for its record: after a restart the configuration may say something else.
func (j *job) notePermit(catalog string, ns []string, a action) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, p := range j.rec.Does {
		if p.Catalog == catalog && slices.Equal(p.Schema, ns) {
			list := slices.Clone(j.rec.Does) // the old one may be on its way into the journal
			list[i].Actions |= uint8(a)
			j.rec.Does = list
			return
		}
	}
	j.rec.Does = append(slices.Clip(j.rec.Does), journal.Does{Catalog: catalog, Schema: slices.Clone(ns), Actions: uint8(a)})
}

// doneTo is what a record has of one schema.
func doneTo(does []journal.Does, catalog string, ns []string) action {
	for _, d := range does {
		if d.Catalog == catalog && slices.Equal(d.Schema, ns) {
			return action(d.Actions)
		}
	}
	return 0
}

func (j *job) does() []journal.Does {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec.Does
}

// stillPermitted is asked right before a write begins to commit, and where rows that were copied are read: the configuration may have changed since, over a
// restart.
func (s *Server) stillPermitted(who string, does []journal.Does) error {
	for _, d := range does {
		e := s.catalogs[d.Catalog]
		if e == nil { // it is not configured any more
			continue
		}
		if mutant.On("scheduler/permitted-once") {
			continue
		}
		if err := s.permit(who, e, d.Schema, action(d.Actions), "schema "+sql.JoinName([]string{e.name, schemaText(d.Schema)})); err != nil {
			return err
		}
	}
	return nil
}

// knows tells whether a principal has any business in a catalog: others are not named to it.
func (s *Server) knows(who string, e *catalogEntry) bool {
	c := s.cfg.Catalogs[e.name]
	return c.AllowsAnything(who)
}

// visibleCatalogs are those that a principal has to do with.
func (s *Server) visibleCatalogs(who string) []string {
	return slices.DeleteFunc(s.catalogNames(), func(name string) bool { return !s.knows(who, s.catalogs[name]) })
}

// visibleSchemas lists what a principal may read of a catalog.
func (s *Server) visibleSchemas(ctx context.Context, who string, e *catalogEntry) ([][]string, error) {
	all, err := s.listSchemas(ctx, e)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(ns []string) bool { return !s.allowed(who, e, ns, toRead) }), nil
}

// visibleTables lists the tables of a schema, if the principal may read it. To others there is no such schema.
func (s *Server) visibleTables(ctx context.Context, who string, e *catalogEntry, ns []string) ([]string, error) {
	if !s.allowed(who, e, ns, toRead) {
		return nil, fail(codeNotFound, "", "schema %s does not exist", sql.JoinName([]string{e.name, schemaText(ns)}))
	}
	return s.listTables(ctx, e, ns)
}

// seenBy tells whose jobs a principal sees: its own, and those of schedules, whose statements name tables, if it may read them.
func (s *Server) seenBy(j *job, who string) bool {
	if j.owner == who {
		return true
	}
	u := j.rec.Upkeep // never changes
	if j.owner != config.MaintenancePrincipal || u == nil || len(u.Ident) == 0 {
		return j.owner == config.MaintenancePrincipal
	}
	e := s.catalogs[u.Catalog]
	return e == nil || s.mayOperate(who) || s.allowed(who, e, u.Ident[:len(u.Ident)-1], toRead)
}
