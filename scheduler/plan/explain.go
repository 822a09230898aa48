package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/sql"
)

// Explain writes the plan for people: the scheduler root on top (S45, S57), then the stages, the last one first.
func (p *Plan) Explain() string {
	var b strings.Builder
	if p.Root != nil && !mutant.On("plan/root-unshown") {
		mark := "[scheduler] "
		if mutant.On("plan/root-unmarked") {
			mark = ""
		}
		line(&b, 0, mark+title(p.Root))
		for _, d := range p.Root.Details {
			line(&b, 1, d)
		}
	}
	if len(p.later) > 0 {
		line(&b, 0, fmt.Sprintf("Adaptive: %s to come, planned when the output of those below is measured", count(len(p.later), "stage")))
		for _, n := range p.later {
			explainNode(&b, n, 1)
		}
	}
	for i := len(p.Stages) - 1; i >= 0; i-- {
		explainStage(&b, p.Stages[i])
	}
	if len(p.Warnings) > 0 {
		line(&b, 0, "Warnings:")
		for _, w := range p.Warnings {
			line(&b, 1, w)
		}
	}
	if text := strings.TrimRight(p.engineText, "\n"); text != "" {
		line(&b, 0, "Engine plan:")
		for l := range strings.SplitSeq(text, "\n") {
			line(&b, 1, l)
		}
	}
	return b.String()
}

func explainStage(b *strings.Builder, s Stage) {
	total := int64(0)
	for _, n := range s.Split.Bytes {
		total += n
	}
	head := fmt.Sprintf("Stage %d: %s", s.ID, count(s.Tasks(), "task"))
	if total > 0 || len(s.Inputs) == 0 { // otherwise nobody knows yet
		head += ", " + ByteText(total) + " of input"
	}
	line(b, 0, head)
	if s.Split.Reason != "" {
		line(b, 1, "not split: "+s.Split.Reason)
	}
	if text := readText(s); text != "" {
		line(b, 1, text)
	}
	for _, n := range s.Notes {
		line(b, 1, n)
	}
	explainNode(b, s.Plan, 1)
}

// readText says which partitions the tasks read, where that is not one each.
func readText(s Stage) string {
	if s.Tasks() < 2 {
		return ""
	}
	coalesced := 0
	for _, share := range s.Split.Shares {
		for _, src := range share {
			coalesced = max(coalesced, len(src.GetExchange().GetParts()))
		}
	}
	if coalesced < 2 {
		return ""
	}
	for _, share := range s.Split.Shares {
		for _, src := range share {
			if n := len(src.GetExchange().GetParts()); n > 0 && n < coalesced {
				return fmt.Sprintf("small partitions are read together, up to %d by one task", coalesced)
			}
		}
	}
	return ""
}

func explainNode(b *strings.Builder, n *Node, depth int) {
	line(b, depth, title(n))
	for _, d := range n.Details {
		line(b, depth+2, d)
	}
	for _, in := range n.Inputs {
		explainNode(b, in, depth+1)
	}
}

func title(n *Node) string {
	out := string(n.Op)
	if n.Op == OpRead {
		return fmt.Sprintf("Read stage %d", n.Stage)
	}
	if n.Label != "" {
		out += " " + n.Label
	}
	if n.Limit > 0 {
		out += fmt.Sprintf(" (at most %d rows)", n.Limit)
	}
	return out
}

func line(b *strings.Builder, depth int, text string) {
	b.WriteString(strings.TrimRight(strings.Repeat("  ", depth)+text, " "))
	b.WriteByte('\n')
}

// writeLines shows what becomes of each column, and how the files are laid out.
func writeLines(r Request) []string {
	fields := r.Spec.GetSchema().GetFields()
	var out []string
	if len(r.Spec.GetPartition()) > 0 {
		parts := make([]string, len(r.Spec.GetPartition()))
		for i, p := range r.Spec.GetPartition() {
			parts[i] = TransformText(p.GetTransform(), p.GetParam(), sourceName(fields, p.GetSourceId()))
		}
		out = append(out, "partitioned by "+strings.Join(parts, ", "))
	}
	if len(r.Spec.GetSort()) > 0 {
		parts := make([]string, len(r.Spec.GetSort()))
		for i, s := range r.Spec.GetSort() {
			parts[i] = TransformText(s.GetTransform(), s.GetParam(), sourceName(fields, s.GetSourceId())) + direction(s)
		}
		out = append(out, "ordered by "+strings.Join(parts, ", "))
	} else if SortForPartitions(r.Spec) {
		out = append(out, "rows are sorted by partition first: many partitions are expected")
	}
	return append(out, mappingLines(r)...)
}

func direction(s *planv1.SortField) string {
	out := " ASC"
	if s.GetDescending() {
		out = " DESC"
	}
	if s.GetNullsFirst() {
		return out + " NULLS FIRST"
	}
	return out + " NULLS LAST"
}

func sourceName(fields []*planv1.Field, id int32) string {
	if f := FieldByID(fields, id); f != nil {
		return sql.DisplayIdent(f.GetName())
	}
	return fmt.Sprintf("column #%d", id)
}

func mappingLines(r Request) []string {
	rows := make([][]string, len(r.Output))
	for i, c := range r.Output {
		f := c.GetField()
		rows[i] = []string{sql.DisplayIdent(f.GetName()), TypeText(f.GetType()) + notNull(f), "<- " + origin(c, r.Columns)}
	}
	return aligned(rows)
}

func origin(c *planv1.OutputColumn, query []*planv1.Column) string {
	at := int(c.GetInput())
	if at < 0 || at >= len(query) {
		if c.GetField().GetWriteDefault().GetKind() != nil {
			return "the column's default"
		}
		return "NULL"
	}
	from := sql.DisplayIdent(query[at].GetName())
	text := query[at].GetEngineType()
	if text == "" || text == c.GetCastType() {
		return from
	}
	if t, err := ParseEngineType(text); err == nil && quotedEqual(t, c.GetCastType()) {
		return from
	}
	return from + ", cast from " + text
}

// quotedEqual: a cast quotes all names, DuckDB only some.
func quotedEqual(t EngineType, castType string) bool {
	other, err := ParseEngineType(castType)
	return err == nil && t.String() == other.String()
}

func columnLines(columns []*planv1.Column) []string {
	rows := make([][]string, len(columns))
	for i, c := range columns {
		text := c.GetEngineType()
		if text == "" {
			text = TypeText(c.GetType())
		}
		rows[i] = []string{sql.DisplayIdent(c.GetName()), text}
	}
	return aligned(rows)
}

// aligned pads all cells but the last of each row. Cells that are too wide stay out of it.
func aligned(rows [][]string) []string {
	const widest = 40
	var widths []int
	for _, r := range rows {
		for i, cell := range r[:len(r)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(cell); n <= widest {
				widths[i] = max(widths[i], n)
			}
		}
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		var b strings.Builder
		for j, cell := range r[:len(r)-1] {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", max(widths[j]-utf8.RuneCountInString(cell), 0)+2))
		}
		b.WriteString(r[len(r)-1])
		out[i] = b.String()
	}
	return out
}
