package scheduler

import (
	"context"

	"github.com/google/uuid"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// fewScanned is how many files of a table are cheaper to bind than to ask again which of them are needed.
const fewScanned = 4

// prune leaves out files of tables that cannot have a row which the query's conditions let through. An executor says what the conditions are, from the tables'
// schemas alone, before any file is opened; the sink knows what that means for its files. The versions stay those that were resolved.
func (s *Server) prune(ctx context.Context, j *job, text string, unresolved []*executorv1.UnresolvedSource, sources []*planv1.Source) error {
	many := false
	for _, src := range sources {
		many = many || len(src.GetTable().GetFiles()) > fewScanned
	}
	if !many {
		return nil
	}
	filters, err := s.filtersOf(ctx, j, text, sources)
	if err != nil {
		return err
	}
	for i, src := range sources {
		filter := filters[src.GetView()].GetPredicate()
		if scan := src.GetTable(); filter != nil && len(scan.GetFiles()) > fewScanned {
			if err := s.pruneScan(ctx, j, scanOf(unresolved[i]), filter, src); err != nil {
				return err
			}
		}
	}
	return nil
}

// filtersOf asks what a query's conditions say about the rows that it needs of its tables, by view.
func (s *Server) filtersOf(ctx context.Context, j *job, text string, sources []*planv1.Source) (map[string]*executorv1.SourceFilter, error) {
	req := &executorv1.Analyze{RequestId: uuid.NewString(), Sql: text, NowMicros: j.rec.Submitted.UnixMicro(), Filters: true, Sources: bareSources(sources)}
	res, err := s.analyzeOnce(ctx, req)
	return res.GetFilters(), err
}

// bareSources are sources without their files.
func bareSources(sources []*planv1.Source) []*planv1.Source {
	out := make([]*planv1.Source, len(sources))
	for i, src := range sources {
		out[i] = &planv1.Source{View: src.GetView(), Alias: src.GetAlias()}
		if t := src.GetTable(); t != nil {
			out[i].Kind = &planv1.Source_Table{Table: &planv1.TableScan{Schema: t.GetSchema(), Table: t.GetTable()}}
		}
	}
	return out
}

// pruneScan asks the sink for the files of the same version again, this time with the filter.
func (s *Server) pruneScan(ctx context.Context, j *job, r tableRead, filter *planv1.Predicate, src *planv1.Source) error {
	scan := src.GetTable()
	if r.asOf != nil {
		r.id, r.asOf = scan.GetVersion(), nil
	}
	r.filter = filter
	kept, err := s.planRead(ctx, j, r)
	if err != nil {
		return err
	}
	if kept.GetVersion() == scan.GetVersion() { // else the branch has moved: what was resolved first is what is read
		kept.Schema = scan.GetSchema()
		src.Kind = &planv1.Source_Table{Table: kept}
	}
	return nil
}
