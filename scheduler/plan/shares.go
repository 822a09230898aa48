package plan

import (
	"cmp"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// shares divides a unit's work: by the rows of its split source, by the partitions of the stages that it reads split, or not at all.
func (b *builder) shares(u *segment) (Split, error) {
	var source *planv1.Source
	var stages []edge
	for _, e := range u.edges {
		switch {
		case !e.split || u.query.GetSingle():
		case e.source != nil && source != nil:
			return Split{}, fmt.Errorf("stage %d: two sources of one stage are split", u.index)
		case e.source != nil:
			source = e.source
		default:
			stages = append(stages, e)
		}
	}
	switch {
	case source != nil && len(stages) > 0:
		return Split{}, fmt.Errorf("stage %d: a source and a stage are split", u.index)
	case source != nil:
		return b.bySource(u, source), nil
	case len(stages) > 0:
		return b.byPartition(u, stages)
	}
	return b.undivided(u, b.whyOne(u)), nil
}

func (b *builder) whyOne(u *segment) string {
	switch {
	case b.whole != "":
		return b.whole
	case len(b.segments) == 1 && unsplittable(b.req.Input) != "":
		return unsplittable(b.req.Input)
	case len(u.edges) == 0:
		return "the query reads no files"
	}
	return "its rows have to meet in one place"
}

func (b *builder) undivided(u *segment, reason string) Split {
	out := Split{Shares: [][]*planv1.Source{nil}, Bytes: []int64{b.inputBytes(u.edges)}, Reason: reason}
	for _, e := range u.edges {
		out.Shares[0] = append(out.Shares[0], b.allOf(e))
	}
	return out
}

// allOf is all of one input.
func (b *builder) allOf(e edge) *planv1.Source {
	if e.source != nil {
		return e.source
	}
	st := b.plan.Stages[e.from.placed]
	return exchangeSource(e.view, st, allPartitions(st))
}

func (b *builder) bySource(u *segment, source *planv1.Source) Split {
	in := Input{Sources: []*planv1.Source{source}, Stats: b.req.Input.Stats, RowWise: true}
	split := SplitInput(in, b.limits)
	if b.keepsTogether(u) && len(split.Shares) > 1 {
		return b.undivided(u, "its columns have types that do not pass between executors")
	}
	out := Split{Bytes: split.Bytes, Reason: split.Reason}
	wholes := make([]*planv1.Source, len(u.edges))
	for i, e := range u.edges {
		if e.source != source {
			wholes[i] = b.allOf(e)
		}
	}
	for _, share := range split.Shares {
		sources := make([]*planv1.Source, len(u.edges))
		for i := range u.edges {
			if sources[i] = wholes[i]; wholes[i] == nil {
				sources[i] = share[0]
			}
		}
		out.Shares = append(out.Shares, sources)
	}
	return out
}

// keepsTogether: the rows of several tasks would have to pass through an exchange that the query's types do not allow. Staged queries
// were checked by whoever staged them.
func (b *builder) keepsTogether(u *segment) bool {
	if u.exchange != nil || len(b.segments) > 1 {
		return false
	}
	if len(b.above) > 0 && b.above[0].Op == OpWrite {
		return false
	}
	for _, c := range u.query.GetColumns() {
		if c.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_UNSPECIFIED {
			return true
		}
	}
	return false
}

// byPartition gives each task some partitions of the stages that it reads: one each, or several small ones where they are measured.
func (b *builder) byPartition(u *segment, stages []edge) (Split, error) {
	n := b.partitionsOf(stages[0].from)
	sizes, known := make([]int64, n), true
	for _, e := range stages {
		if got := b.partitionsOf(e.from); got != n {
			return Split{}, fmt.Errorf("stage %d reads %d partitions on one side and %d on the other", u.index, n, got)
		}
		m, ok := b.measured[e.from.placed]
		if known = known && ok; !ok {
			continue
		}
		for p, bytes := range m.Bytes {
			if p < len(sizes) {
				sizes[p] += bytes
			}
		}
	}
	groups := b.coalesce(sizes, known)
	if b.keepsTogether(u) && len(groups) > 1 {
		groups = [][]int32{upTo(n)}
	}
	out := Split{}
	if len(groups) == 1 {
		out.Reason = "its input is small or has one partition"
	}
	perTask := b.inputBytes(u.edges) / int64(max(len(groups), 1))
	for _, g := range groups {
		var sources []*planv1.Source
		for _, e := range u.edges {
			if e.source != nil || !e.split {
				sources = append(sources, b.allOf(e))
				continue
			}
			sources = append(sources, exchangeSource(e.view, b.plan.Stages[e.from.placed], g))
		}
		bytes := perTask
		if known {
			bytes = 0
			for _, p := range g {
				bytes += sizes[p]
			}
		}
		out.Shares, out.Bytes = append(out.Shares, sources), append(out.Bytes, bytes)
	}
	return out, nil
}

func (b *builder) partitionsOf(u *segment) int32 {
	return b.plan.Stages[u.placed].work.GetExchange().GetPartitions()
}

// coalesce puts neighbouring small partitions into one task. Where nothing is measured each partition is a task.
func (b *builder) coalesce(sizes []int64, known bool) [][]int32 {
	if !known {
		var out [][]int32
		for p := range sizes {
			out = append(out, []int32{int32(p)})
		}
		return out
	}
	total := int64(0)
	for _, n := range sizes {
		total += n
	}
	tasks := taskCount(total, len(sizes), b.limits)
	units := make([]unit, len(sizes))
	for p, n := range sizes {
		units[p].bytes = n
	}
	var out [][]int32
	at := int32(0)
	for _, group := range balance(units, total, tasks) {
		var g []int32
		for range group {
			g = append(g, at)
			at++
		}
		out = append(out, g)
	}
	return out
}

func upTo(n int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func allPartitions(st Stage) []int32 { return upTo(st.work.GetExchange().GetPartitions()) }

// exchangeSource reads partitions of a stage. Its parts name partitions only: FillParts makes real ones of them.
func exchangeSource(view string, st Stage, partitions []int32) *planv1.Source {
	ex := &planv1.ExchangeSource{Stage: st.ID, Columns: st.columns}
	for _, p := range partitions {
		ex.Parts = append(ex.Parts, &planv1.ExchangePart{Task: anyTask, Partition: p})
	}
	return &planv1.Source{View: view, Kind: &planv1.Source_Exchange{Exchange: ex}}
}

// anyTask marks a part of a planned task: the partition is read of every task of the stage.
const anyTask = -1

// FillParts gives the sources with which an attempt is launched: for each partition that a planned task reads, the parts that the stage's
// tasks have left of it, in the order of tasks and then of partitions. parts returns those of one partition in the order of the tasks.
func FillParts(sources []*planv1.Source, parts func(stage, partition int32) []*planv1.ExchangePart) []*planv1.Source {
	var out []*planv1.Source
	for i, s := range sources {
		ex := s.GetExchange()
		if ex == nil {
			continue
		}
		if out == nil {
			out = append(out, sources...)
		}
		filled := &planv1.ExchangeSource{Stage: ex.GetStage(), Columns: ex.GetColumns()}
		for _, p := range ex.GetParts() {
			filled.Parts = append(filled.Parts, parts(ex.GetStage(), p.GetPartition())...)
		}
		if len(ex.GetParts()) > 1 {
			slices.SortStableFunc(filled.Parts, func(a, b *planv1.ExchangePart) int {
				return cmp.Or(cmp.Compare(a.GetTask(), b.GetTask()), cmp.Compare(a.GetPartition(), b.GetPartition()))
			})
		}
		out[i] = &planv1.Source{View: s.GetView(), Alias: s.GetAlias(), Kind: &planv1.Source_Exchange{Exchange: filled}}
	}
	if out == nil {
		return sources
	}
	return out
}
