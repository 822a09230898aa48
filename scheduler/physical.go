package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// physicalPlan is the submitted plan of a job of kind plan.
func physicalPlan(rec *journal.Job) (*planv1.PhysicalPlan, error) {
	p := &planv1.PhysicalPlan{}
	if err := proto.Unmarshal(rec.Plan, p); err != nil {
		return nil, fmt.Errorf("%w: physical plan: %w", journal.ErrDamaged, err)
	}
	return p, nil
}

// physicalText stands for the statement of a physical plan.
func physicalText(p *planv1.PhysicalPlan) string {
	tasks := 0
	for _, st := range p.GetStages() {
		tasks += len(st.GetTasks())
	}
	text := fmt.Sprintf("physical plan of %d stages and %d tasks", len(p.GetStages()), tasks)
	if t := p.GetTarget(); t != nil {
		text += " into " + t.GetTable()
	}
	return text
}

// runPhysical runs a plan that its author has cut and divided. Its root is split off as off a statement's (S6).
func (s *Server) runPhysical(j *job) error {
	p, err := physicalPlan(&j.rec)
	if err != nil {
		return err
	}
	l := &lowering{s: s, j: j, p: p, tables: map[string]*planv1.TableScan{}}
	if err := l.stages(); err != nil {
		return err
	}
	if p.GetTarget() != nil {
		return l.write()
	}
	l.out.Above = []*plan.Node{{Op: plan.OpResult}}
	if p.GetLimit() > 0 {
		l.out.Above = append(l.out.Above, &plan.Node{Op: plan.OpCoalesce, Limit: p.GetLimit()})
	}
	q := &query{}
	if q.planner, q.first, err = l.planned(); err != nil {
		return err
	}
	j.update(func() { j.plan = q.plan().Explain() })
	return s.runPlannedQuery(j, q)
}

// lowering makes tasks of a submitted plan: what they read is resolved and pinned, and each query is bound over it.
type lowering struct {
	s      *Server
	j      *job
	p      *planv1.PhysicalPlan
	out    plan.Physical
	tables map[string]*planv1.TableScan // each is read in one version
}

func (l *lowering) stages() error {
	for i := range l.p.GetStages() {
		if err := l.stage(i); err != nil {
			var f *jobFailure
			if errors.As(err, &f) {
				f.Message = fmt.Sprintf("stage %d: %s", i, f.Message)
				return f
			}
			return planFailure(err)
		}
	}
	return nil
}

func (l *lowering) stage(i int) error {
	st := l.p.GetStages()[i]
	bound := map[string]*analysis{} // by the text of the query: tasks mostly have the same
	for n, t := range st.GetTasks() {
		task := &planv1.Task{Stage: int32(i), Task: int32(n), Sql: t.GetSql()} //nolint:gosec // bounded
		for _, in := range t.GetInputs() {
			src, err := l.source(in)
			if err != nil {
				return err
			}
			task.Sources = append(task.Sources, src)
		}
		a := bound[t.GetSql()]
		if a == nil {
			var err error
			if a, err = l.bind(task); err != nil {
				return err
			}
			bound[t.GetSql()] = a
		}
		task.Sql = a.result.GetSql()
		a.shareColumns(task.Sources)
		if len(l.out.Columns) == i {
			if err := declared(st.GetColumns(), a.result.GetColumns()); err != nil {
				return fmt.Errorf("%w: stage %d: %w", plan.ErrPhysical, i, err)
			}
			l.out.Columns = append(l.out.Columns, a.result.GetColumns())
		} else if err := declared(l.out.Columns[i], a.result.GetColumns()); err != nil {
			return fmt.Errorf("%w: stage %d: task %d and task 0 give different rows: %w", plan.ErrPhysical, i, n, err)
		}
		if k := st.GetExchange(); k != planv1.ExchangeKind_EXCHANGE_KIND_UNSPECIFIED {
			task.Work = &planv1.Task_Exchange{Exchange: &planv1.ExchangeTask{Kind: k, Keys: st.GetKeys(), Partitions: max(st.GetPartitions(), 1)}}
		}
		l.out.Tasks = append(l.out.Tasks, task)
	}
	l.out.Repeat = append(l.out.Repeat, st.GetRepeatable())
	return nil
}

// maxColumnsShown bounds a message.
const maxColumnsShown = 20

// declared holds what a stage says of its rows against what its query gives.
func declared(want, have []*planv1.Column) error {
	if len(want) == 0 {
		return nil
	}
	text := func(list []*planv1.Column) string {
		out := ""
		for i, c := range list {
			if i == maxColumnsShown {
				return out + ", …"
			}
			if i > 0 {
				out += ", "
			}
			out += sql.DisplayIdent(c.GetName()) + " " + c.GetEngineType()
		}
		return "(" + out + ")"
	}
	same := slices.EqualFunc(want, have, func(a, b *planv1.Column) bool {
		return a.GetName() == b.GetName() && a.GetEngineType() == b.GetEngineType()
	})
	if !same {
		return fmt.Errorf("its rows are declared as %s and its query gives %s", text(want), text(have))
	}
	return nil
}

func (l *lowering) source(in *planv1.PhysicalInput) (*planv1.Source, error) {
	src := &planv1.Source{View: in.GetView(), Alias: in.GetView()}
	switch k := in.GetKind().(type) {
	case *planv1.PhysicalInput_Files:
		files, err := l.s.resolveFiles(l.j.ctx, l.j, k.Files.GetNames())
		if err != nil {
			return nil, sourceFailure(err)
		}
		if k.Files.GetEndRow() > 0 {
			if len(files) != 1 {
				return nil, fail(codeUser, "give one file for each share", "input %s: rows %d to %d of %d files", in.GetView(), k.Files.GetFirstRow(), k.Files.GetEndRow(), len(files))
			}
			files[0].FirstRow, files[0].EndRow = k.Files.GetFirstRow(), k.Files.GetEndRow()
		}
		src.Kind = &planv1.Source_File{File: &planv1.FileSource{Function: k.Files.GetFunction(), Options: k.Files.GetOptions(), Files: files}}
	case *planv1.PhysicalInput_Table:
		scan := l.tables[k.Table]
		if scan == nil {
			name, err := tableName(k.Table)
			if err != nil {
				return nil, err
			}
			if scan, err = l.s.planScan(l.j.ctx, l.j, name); err != nil {
				return nil, err
			}
			l.tables[k.Table] = scan
		}
		src.Kind = &planv1.Source_Table{Table: scan}
	case *planv1.PhysicalInput_Stage:
		src.Kind = &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{
			Stage: k.Stage.GetStage(), Columns: l.out.Columns[k.Stage.GetStage()], Parts: plan.Parts(l.p, k.Stage),
		}}
	}
	return src, nil
}

// bind has an executor check the query of a task over its inputs. Nothing is read from exchanges, whose columns are known.
func (l *lowering) bind(t *planv1.Task) (*analysis, error) {
	defer l.j.timed("analyze", time.Now())
	req := &executorv1.Analyze{RequestId: uuid.NewString(), Sql: t.GetSql(), BindOnly: true, NowMicros: l.j.rec.Submitted.UnixMicro()}
	for _, src := range t.GetSources() {
		if ex := src.GetExchange(); ex != nil {
			src = &planv1.Source{View: src.GetView(), Alias: src.GetAlias(), Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{Stage: ex.GetStage(), Columns: ex.GetColumns()}}}
		}
		req.Sources = append(req.Sources, src)
	}
	if l.s.pool.Connected() == 0 {
		l.j.waitsForExecutor()
	}
	res, err := l.s.analyzeOnce(l.j.ctx, req)
	if err != nil {
		return nil, err
	}
	return &analysis{result: res}, nil
}

// shareColumns gives the files of a task the columns that were bound for the first task with its query.
func (a *analysis) shareColumns(sources []*planv1.Source) {
	for _, st := range a.result.GetStats() {
		for _, src := range sources {
			if f := src.GetFile(); f != nil && src.GetView() == st.GetView() {
				f.Columns = st.GetColumns()
			}
		}
	}
}

// write makes the last stage's tasks write into the target, and the commit the plan's root.
func (l *lowering) write() error {
	target := l.p.GetTarget()
	name, err := tableName(target.GetTable())
	if err != nil {
		return err
	}
	w, err := l.s.planAppend(name, l.j)
	if err != nil {
		return err
	}
	if err := l.s.prepareInsert(l.j.ctx, l.j, w); err != nil {
		return err
	}
	if err := distinctColumns(w.target, w.spec.GetSchema().GetFields()); err != nil {
		return err
	}
	columns := l.out.Columns[len(l.out.Columns)-1]
	out, err := plan.MapColumns(plan.Target{Table: w.target.String(), Schema: w.spec.Schema, List: target.GetColumns(), ByName: target.GetByName()}, columns)
	if err != nil {
		return planFailure(err)
	}
	spec := proto.CloneOf(w.spec)
	spec.SinkState = nil                    // executors have no use for it
	last := int32(len(l.p.GetStages()) - 1) //nolint:gosec // bounded
	for _, task := range l.out.Tasks {
		if task.GetStage() == last {
			task.Work = &planv1.Task_Write{Write: &planv1.WriteTask{
				Columns: out, Spec: spec, SortForPartitions: plan.SortForPartitions(spec), Splice: !l.j.settings().NoSplice,
			}}
		}
	}
	l.out.Above = []*plan.Node{{Op: plan.OpCommit, Label: w.target.String()}, {Op: plan.OpWrite, Label: w.target.String()}}
	l.out.Spec = w.spec
	if w.planner, w.first, err = l.planned(); err != nil {
		return err
	}
	w.plan = w.planner.Plan()
	w.text = w.plan.Explain()
	l.j.warn(w.plan.Warnings...)
	l.j.update(func() { l.j.plan = w.text })
	return l.s.runPlanned(l.j, w)
}

// planned makes the planner that the job's settings ask for, and its first stages.
func (l *lowering) planned() (plan.Planner, plan.Batch, error) {
	set := l.j.settings()
	r := &l.out.Request
	r.Limits, r.MaxResultBytes, r.Root, r.Pipelined = l.s.limits(l.s.pool.Connected()), int64(l.s.cfg.Limits.MaxResultBytes), l.s.rootPredicate(), set.Pipelined
	if err := set.Apply(r); err != nil {
		return nil, plan.Batch{}, planFailure(err)
	}
	p, err := plan.FromPhysical(l.s.planner(l.j), l.out)
	if err != nil {
		return nil, plan.Batch{}, planFailure(err)
	}
	first, err := p.Next(nil)
	return p, first, planFailure(err)
}
