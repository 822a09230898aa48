package analyze

import (
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/stages"
)

// stage divides the query into stages. What reads nothing has one, without a further look at it. A very long text is not sent twice: then the answer has no
// stages, and row_wise says what there is to say.
func (a *analysis) stage(bound []*planv1.Column) error {
	if len(a.out.GetSql()) > stages.Longest {
		return nil
	}
	q := stages.Query{SQL: a.out.GetSql(), Node: a.node, Columns: bound, RowWise: a.out.GetRowWise(), Why: a.out.GetNotRowWise()}
	for n, src := range a.req.GetSources() {
		s := stages.Source{View: src.GetView(), Columns: a.out.GetStats()[n].GetColumns(), Whole: inOneTask(src)}
		for _, f := range a.out.GetStats()[n].GetFiles() {
			s.Bytes += f.GetBytes()
		}
		q.Sources = append(q.Sources, s)
	}
	var err error
	switch {
	case len(q.Sources) == 0:
		a.out.Staged = stages.Single(q, q.Why)
	case a.rewriter != nil && a.rewriter.sampled:
		a.out.Staged = stages.Single(q, "a sample is taken of all rows")
	case !a.reads:
		a.out.Staged = stages.Single(q, "DuckDB knows its rows without reading any")
	default:
		a.out.Staged, err = stages.Plan(a.ctx, a.inst, q, a.stageOptions())
	}
	return err
}

// stageOptions: who wants less to be read by every task gets that.
func (a *analysis) stageOptions() stages.Options {
	o := stages.DefaultOptions
	if n := a.req.GetWholeBytes(); n != 0 {
		o.WholeBytes = min(o.WholeBytes, n)
	}
	return o
}

// inOneTask answers why tasks cannot share the files of a source; empty: they can. Text files are shared if nothing in how they are read is guessed from
// what is in them, because each task would guess for itself.
func inOneTask(src *planv1.Source) string {
	if isParquet(src) {
		return ""
	}
	options := map[string]string{}
	for name, value := range src.GetFile().GetOptions() {
		options[strings.ToLower(name)] = strings.ToLower(value)
	}
	needed := []string{"columns", "format", "records"}
	if strings.HasPrefix(src.GetFile().GetFunction(), "read_csv") {
		needed = []string{"columns", "delim", "quote", "escape", "header", "auto_detect"}
		if v := options["auto_detect"]; !slices.Contains([]string{"false", "cast('f' as boolean)"}, v) {
			delete(options, "auto_detect")
		}
	} else if v := strings.Trim(options["format"], "'"); v != "newline_delimited" && v != "nd" {
		delete(options, "format")
	}
	if strings.Trim(options["records"], "'") == "auto" {
		delete(options, "records")
	}
	for _, n := range needed {
		if _, given := options[n]; !given {
			return "the schema of CSV and JSON is inferred over all files together"
		}
	}
	return ""
}
