package flightsql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/sql"
)

// Bounds of what is bound to one statement. A statement has at most 12 MiB.
const (
	maxBound      = 10 << 20 // bytes of literals
	maxUnionRows  = 500      // rows for a query that is not a VALUES list: each adds a level to the plan
	ingestAdvice  = "ingest the rows as an Arrow stream instead (adbc_ingest, CommandStatementIngest)"
	noValuesBound = "the statement has %d parameters and no values are bound"
)

// binding are rows of values in the form of literals, one for each parameter.
type binding struct {
	rows [][]string
	size int // of the literals and of the text that each row repeats
}

func (b *binding) bytes() int {
	if b == nil {
		return 0
	}
	return b.size
}

// readBinding reads the client's rows; nil if it sent none and the statement takes none.
func (t *template) readBinding(in *upload) (*binding, error) {
	defer in.close()
	schema, err := in.schema()
	if err != nil {
		return nil, err
	}
	if schema == nil || schema.NumFields() == 0 {
		if t.count > 0 {
			return nil, invalid(noValuesBound, t.count)
		}
		return nil, nil
	}
	order, err := t.columns(schema)
	if err != nil {
		return nil, err
	}
	b := &binding{}
	err = in.each(func(rec arrow.RecordBatch) error {
		for i := range int(rec.NumRows()) {
			row := make([]string, t.count)
			for p, col := range order {
				text, err := literal(rec.Column(col), i)
				if err != nil {
					return invalid("parameter %s, row %d: %v", t.label(p), len(b.rows)+1, err)
				}
				row[p] = text
				b.size += len(text)
			}
			if b.size += len(t.query.Text); b.size > maxBound {
				return status.Errorf(codes.ResourceExhausted, "more than %d bytes are bound to one statement, at row %d; %s", maxBound, len(b.rows)+1, ingestAdvice)
			}
			b.rows = append(b.rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if t.valuesAt == 0 && len(b.rows) > maxUnionRows {
		return nil, status.Errorf(codes.ResourceExhausted, "%d rows are bound to a query; at most %d are taken unless it is VALUES (…); %s", len(b.rows), maxUnionRows, ingestAdvice)
	}
	return b, nil
}

// columns gives for each parameter the column that has its values: by position, or by name for $name.
func (t *template) columns(schema *arrow.Schema) ([]int, error) {
	if schema.NumFields() != t.count {
		return nil, invalid("the statement has %d parameters and %d columns are bound", t.count, schema.NumFields())
	}
	out := make([]int, t.count)
	if len(t.names) == 0 || !t.hasNames(schema) {
		for i := range out {
			out[i] = i
		}
		return out, nil
	}
	fields := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		fields[i] = strings.TrimPrefix(f.Name, "$")
	}
	for p, name := range t.names {
		at, _ := sql.Find(name, fields)
		if at < 0 {
			return nil, invalid("nothing is bound for the parameter $%s; bound are %s", name, strings.Join(fields, ", "))
		}
		out[p] = at
	}
	return out, nil
}

// hasNames: clients that know only positions bind columns named "0", "1" or nothing.
func (t *template) hasNames(schema *arrow.Schema) bool {
	for i, f := range schema.Fields() {
		if f.Name != "" && f.Name != fmt.Sprint(i) && f.Name != fmt.Sprint(i+1) {
			return true
		}
	}
	return false
}

func (t *template) label(p int) string {
	if p < len(t.names) {
		return "$" + t.names[p]
	}
	return fmt.Sprintf("$%d", p+1)
}

// sql is the statement with the bound values. ok is false if no row is bound to a statement that takes some: nothing is to be run.
func (t *template) sql(b *binding) (text string, ok bool, err error) {
	switch {
	case t.count == 0:
		return t.text, true, nil
	case b == nil:
		return "", false, invalid(noValuesBound, t.count)
	case len(b.rows) == 0:
		return "", false, nil
	}
	return t.with(b.rows), true, nil
}
