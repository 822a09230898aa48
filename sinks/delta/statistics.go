package delta

import (
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/schema"
)

// metrics says what executors are to find out about columns.
func (st *state) metrics(*planv1.WriteSpec, *schema.Schema) {}

// stats are the statistics of a file as the log has them.
func (p *plan) stats(f *planv1.DataFile) (*string, error) {
	text := `{"numRecords":` + strconv.FormatInt(f.GetRecordCount(), 10) + `}`
	return &text, nil
}
