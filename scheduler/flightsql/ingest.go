package flightsql

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

type ingestMode int

const (
	modeAppend ingestMode = iota
	modeCreate
	modeCreateAppend
)

// ingest writes an Arrow stream to a table: the rows go to a file first, and when the client has ended its stream one job commits them.
func (s *server) ingest(ctx context.Context, cmd *pb.CommandStatementIngest, in *upload) (int64, error) {
	defer in.close()
	mode, err := checkIngest(cmd)
	if err != nil {
		return 0, err
	}
	st := s.statement(ctx, "")
	job := &ingestJob{s: s, ctx: ctx, mode: mode, defaults: st}
	if job.name, err = ingestTarget(cmd, st); err != nil {
		return 0, err
	}
	if err := job.findTable(); err != nil {
		return 0, err
	}
	if err := job.receive(in); err != nil {
		return 0, err
	}
	return job.run()
}

// checkIngest refuses what cannot be had, before any row is taken.
func checkIngest(cmd *pb.CommandStatementIngest) (ingestMode, error) {
	if err := noTransaction(cmd.GetTransactionId()); err != nil {
		return 0, err
	}
	if cmd.GetTemporary() {
		return 0, unsupported("temporary tables are not supported")
	}
	for name := range cmd.GetOptions() {
		return 0, invalid("the ingest option %q is not known", name)
	}
	if cmd.GetTable() == "" {
		return 0, invalid("no table is named to ingest into")
	}
	const (
		create = pb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_CREATE
		fails  = pb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_FAIL
		adds   = pb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_APPEND
	)
	opts := cmd.GetTableDefinitionOptions()
	creates := opts.GetIfNotExist() == create
	switch opts.GetIfExists() {
	case pb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_REPLACE:
		return 0, unsupported("an ingest does not replace a table; drop it first, or append")
	case fails:
		if !creates {
			return 0, invalid("an ingest that fails whether the table exists or not; choose create or append")
		}
		return modeCreate, nil
	case adds, pb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_UNSPECIFIED:
		if creates {
			return modeCreateAppend, nil
		}
		return modeAppend, nil
	}
	return 0, invalid("unknown options about the table")
}

// ingestTarget is the table's name in parts.
func ingestTarget(cmd *pb.CommandStatementIngest, st Statement) ([]string, error) {
	name := []string{cmd.GetTable()}
	if cmd.GetSchema() != "" {
		name = append(schemaParts(cmd.GetSchema()), name...)
	}
	catalog := cmd.GetCatalog()
	if catalog == "" && len(name) > 2 {
		if catalog = st.Catalog; catalog == "" {
			return nil, invalid("the schema %s has several parts: name its catalog too", cmd.GetSchema())
		}
	}
	if catalog != "" {
		if len(name) == 1 {
			if st.Schema == "" {
				return nil, invalid("the table %s is given a catalog and no schema", cmd.GetTable())
			}
			name = append(schemaParts(st.Schema), name...)
		}
		name = append([]string{catalog}, name...)
	}
	return name, nil
}

// schemaParts reads a schema's name as the list of schemas writes it: a.b is one schema inside another, "a.b" one with a dot in its name.
func schemaParts(text string) []string {
	toks, err := sql.Tokenize(text)
	if err != nil || len(toks)%2 == 0 {
		return []string{text}
	}
	var out []string
	for i, t := range toks {
		if name := t.Kind == sql.KindIdent || t.Kind == sql.KindQuoted; i%2 == 0 && name {
			out = append(out, t.Value)
		} else if i%2 == 0 || !symbol(t, ".") {
			return []string{text}
		}
	}
	return out
}

// ingestJob is one ingest on its way.
type ingestJob struct {
	s        *server
	ctx      context.Context //nolint:containedctx // of the call
	mode     ingestMode
	name     []string
	defaults Statement
	table    *planv1.Schema // nil: to be created

	file    string
	columns []column
	rows    int64
	schema  *arrow.Schema
}

func (j *ingestJob) display() string { return sql.JoinName(j.name) }

// findTable looks at the table. What the options say about its existence is decided by the job in the end; here it only spares the client from
// sending rows in vain. Under a key the table may be there because of this very ingest.
func (j *ingestJob) findTable() error {
	table, err := j.s.backend.Table(j.ctx, j.s.Principal(j.ctx), j.name, j.defaults)
	switch {
	case err == nil && j.mode == modeCreate:
		if j.defaults.Key == "" {
			return status.Errorf(codes.AlreadyExists, "table %s exists already; append to it, or choose another name", j.display())
		}
	case err == nil:
		j.table = table
	case status.Code(err) != codes.NotFound || j.mode == modeAppend:
		return asStatus(err)
	}
	return nil
}

// receive puts the stream into a file. Only so many do at a time; the others' clients wait.
func (j *ingestJob) receive(in *upload) (err error) {
	select {
	case j.s.ingests <- struct{}{}:
		defer func() { <-j.s.ingests }()
	case <-j.ctx.Done():
		return status.FromContextError(j.ctx.Err()).Err()
	case <-j.s.closing:
		return errStopping
	}
	if j.schema, err = in.schema(); err != nil {
		return err
	}
	if j.schema == nil || j.schema.NumFields() == 0 {
		return invalid("the stream has no columns")
	}
	if j.columns, err = columnsOf(j.schema, j.table); err != nil {
		return err
	}
	f, err := j.s.backend.NewInput()
	if err != nil {
		return asStatus(err)
	}
	j.file = f.Name()
	sp, err := newSpool(f, j.columns)
	if err == nil {
		if err = in.each(sp.write); err == nil {
			err = sp.close()
		}
		j.rows = sp.rows
	}
	_ = f.Close() // synced where it counts
	if err != nil {
		j.discard()
		return asStatus(err)
	}
	return nil
}

func (j *ingestJob) discard() {
	if err := os.Remove(j.file); err != nil && !os.IsNotExist(err) {
		j.s.Logger.Warn("the file of an ingest is left until the next start", "file", j.file, "error", err)
	}
}

// run commits the file.
func (j *ingestJob) run() (int64, error) {
	if j.table != nil || j.mode == modeAppend {
		return j.submit(j.insertText(), j.file)
	}
	if j.mode == modeCreate {
		return j.submit(j.createText(), j.file)
	}
	// Somebody else may create the table meanwhile; the file is kept under a second name for that.
	second := j.file + ".parquet"
	if err := os.Link(j.file, second); err != nil {
		j.discard()
		return 0, status.Errorf(codes.Internal, "ingest: %v", err)
	}
	n, err := j.submit(j.createText(), j.file)
	if j.file = second; status.Code(err) != codes.AlreadyExists {
		j.discard()
		return n, err
	}
	return j.submit(j.insertText(), second)
}

func (j *ingestJob) submit(text, file string) (int64, error) {
	st := j.defaults
	st.SQL, st.Input = text, file
	st.InputIdentity = []string{j.display(), strconv.Itoa(int(j.mode)), strconv.FormatInt(j.rows, 10), j.schema.String()}
	job, err := j.s.run(j.ctx, st)
	if err != nil {
		return 0, err
	}
	return j.written(job)
}

func (j *ingestJob) written(job *schedulerv1.Job) (int64, error) {
	n, err := affected(job)
	if err == nil && n < 0 {
		n = j.rows // committed by an earlier run under this key, which had the same rows
	}
	return n, err
}

func (j *ingestJob) target() string {
	parts := make([]string, len(j.name))
	for i, p := range j.name {
		parts[i] = sql.QuoteIdent(p)
	}
	return strings.Join(parts, ".")
}

func (j *ingestJob) insertText() string {
	return "INSERT INTO " + j.target() + " BY NAME " + j.selectText()
}

func (j *ingestJob) createText() string {
	return "CREATE TABLE " + j.target() + " AS " + j.selectText()
}

func (j *ingestJob) selectText() string {
	list := make([]string, len(j.columns))
	for i, c := range j.columns {
		list[i] = c.selected()
	}
	return fmt.Sprintf("SELECT %s FROM read_parquet(%s, hive_partitioning = false)", strings.Join(list, ", "), sql.QuoteString(InputName))
}
