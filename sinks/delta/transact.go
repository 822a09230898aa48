package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/stats"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

// transaction is what the batch does to the table, checked against what others have committed since the statement was planned.
func (a *attempt) transaction(ctx context.Context, t *table) (*transaction.Transaction, error) {
	b := a.batch
	tx := &transaction.Transaction{Base: t.Snapshot, Adds: b.adds, EngineInfo: engine(), Metrics: b.counts()}
	if len(b.user) > 0 {
		text, err := json.Marshal(b.user)
		if err != nil {
			return nil, err
		}
		tx.UserMetadata = string(text)
	}
	if d := b.plan.Define; d != nil {
		tx.Metadata = &d.Metadata
		if t.missing || d.Upgrades {
			tx.Protocol = &d.Protocol
		}
		tx.Operation = transaction.Created(tx.Metadata, !t.missing, true)
	}
	switch b.plan.Mode {
	case sinkv1.WriteMode_WRITE_MODE_CREATE:
		tx.Base = nil
		return tx, nil
	case sinkv1.WriteMode_WRITE_MODE_APPEND: // it depends on nothing that others may have changed, besides what landable has looked at
		tx.Operation = transaction.Append(b.plan.PartitionBy)
		return tx, nil
	}
	base, winners, err := a.since(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := b.plan.removals(tx, base, b); err != nil {
		return nil, err
	}
	return tx, transaction.Check(tx, winners)
}

// since gives the snapshot that the statement was planned on, and the commits that have landed since. What only deletes does it to the rows that are there when it commits.
func (a *attempt) since(ctx context.Context, t *table) (*log.Snapshot, []log.Commit, error) {
	b := a.batch
	version, err := strconv.ParseInt(b.plan.GetBaseVersion(), 10, 64)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w: base version %q", transaction.ErrInvalid, errState, b.plan.GetBaseVersion())
	case version == t.Version, b.plan.Mode == sinkv1.WriteMode_WRITE_MODE_OVERWRITE && len(b.adds) == 0:
		return t.Snapshot, nil, nil
	case version > t.Version:
		return nil, nil, fmt.Errorf("%w: it is at version %d, and was at version %d when the statement was planned; run the statement again", transaction.ErrInvalid, t.Version, version)
	}
	if a.base == nil {
		a.base, err = log.Load(ctx, t.store, log.LoadOptions{Version: &version})
		if errors.Is(err, log.ErrNoVersion) || errors.Is(err, log.ErrCorrupt) {
			err = fmt.Errorf("version %d, on which the statement was planned, can no longer be read, and version %d is there now; run the statement again: %w", version, t.Version, err)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	var winners []log.Commit
	for v := version + 1; v <= t.Version; v++ {
		c, err := log.ReadCommit(ctx, t.store, v)
		if err != nil {
			return nil, nil, err
		}
		winners = append(winners, *c)
	}
	return a.base, winners, nil
}

// removals says which files of base go, and on which the outcome depends.
func (p *plan) removals(tx *transaction.Transaction, base *log.Snapshot, b *batch) error {
	tx.Base = base
	scope := p.GetScope()
	switch {
	case p.Mode == sinkv1.WriteMode_WRITE_MODE_REPLACE:
		tx.Overwrite(base)
		if d, ok := base.Domains()[domainClustering]; ok { // it names columns of the table that was
			d.Removed = true
			tx.Domains = []log.DomainMetadata{d}
		}
		return nil
	case p.Mode == sinkv1.WriteMode_WRITE_MODE_REWRITE:
		tx.Rearranges, tx.Operation = true, transaction.Optimized()
		return p.replacedFiles(tx, b)
	case p.Mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		tx.Operation = p.rowLevel()
		tx.Reads = transaction.Reads{All: true}
		if scope.GetFilter() != nil {
			f, err := p.filter(scope.GetFilter())
			if err != nil {
				return err
			}
			tx.Reads = transaction.Reads{Match: f.Inclusive}
		}
		return p.replacedFiles(tx, b)
	case scope.GetAll():
		tx.Operation = transaction.Overwritten(p.PartitionBy, "", false)
		tx.Overwrite(base)
		return nil
	case scope.GetPartitions():
		tx.Operation = transaction.Overwritten(p.PartitionBy, "", true)
		return tx.OverwritePartitions(base)
	case scope.GetFilter() != nil:
		return p.overwriteWhere(tx, base)
	}
	return fmt.Errorf("%w: %w: an overwrite without a scope", transaction.ErrInvalid, errState)
}

func (p *plan) rowLevel() transaction.Operation {
	switch strings.ToLower(p.Operation) {
	case "delete":
		return transaction.Deleted()
	case "merge":
		return transaction.Merged("")
	}
	return transaction.Updated()
}

// overwriteWhere removes the files of which every row is in the filter, and refuses those of which some are.
func (p *plan) overwriteWhere(tx *transaction.Transaction, base *log.Snapshot) error {
	f, err := p.filter(p.GetScope().GetFilter())
	if err != nil {
		return err
	}
	tx.Operation = transaction.Overwritten(p.PartitionBy, f.SQL(), false)
	tx.Reads = transaction.Reads{Match: f.Inclusive}
	for a := range base.Files() {
		switch {
		case f.Strict(a):
			tx.Removes = append(tx.Removes, a)
		case f.Inclusive(a):
			return fmt.Errorf("%w: data file %s may hold rows that the condition covers and rows that it does not; DELETE the rows instead, or write the condition over partition columns",
				transaction.ErrInvalid, a.Path)
		}
	}
	return nil
}

// replacedFiles removes the files that the tasks have written anew.
func (p *plan) replacedFiles(tx *transaction.Transaction, b *batch) error {
	live := map[string]*log.Add{}
	for a := range tx.Base.Files() {
		live[resolve(p.Location, a.Path)] = a
	}
	if len(b.replaced) > 0 && tx.Reads.Paths == nil {
		tx.Reads.Paths = map[string]struct{}{}
	}
	for _, r := range b.replaced {
		a := live[r.Path]
		if a == nil {
			return fmt.Errorf("%w: data file %s, which the %s replaces, is not part of the table at version %d, or is replaced twice", transaction.ErrInvalid, r.Path, b.what(), tx.Base.Version)
		}
		delete(live, r.Path)
		if rows, ok := liveRows(a); ok && rows != r.Records {
			return fmt.Errorf("%w: data file %s has %d rows by the table's statistics, and the task that replaces it has read %d", transaction.ErrInvalid, r.Path, rows, r.Records)
		}
		tx.Removes = append(tx.Removes, a)
		tx.Reads.Paths[a.Path] = struct{}{}
	}
	return nil
}

// liveRows are the rows of a file that are not deleted, where its statistics tell.
func liveRows(a *log.Add) (int64, bool) {
	if a.Stats == nil {
		return 0, false
	}
	n, ok := stats.Records(*a.Stats)
	if ok && a.DeletionVector != nil {
		n -= a.DeletionVector.Cardinality
	}
	return n, ok
}

// absolute begins paths of the log that are URIs (RFC 3986, section 3.1). A directory such as time=03:06 is none.
var absolute = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]*:)?/`)

// resolve is the URI of a path of the log, which is relative to the table or a URI itself.
func resolve(location, path string) string {
	if absolute.MatchString(path) {
		return path
	}
	return location + "/" + path
}

// counts are what a row-level write tells of rows, by the names that Delta's histories have.
func (b *batch) counts() map[string]string {
	if b.plan.Mode != sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL {
		return nil
	}
	var had int64
	for _, r := range b.replaced {
		had += r.Records
	}
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	kept := had - b.deleted - b.updated
	switch strings.ToLower(b.plan.Operation) {
	case "delete":
		return map[string]string{"numDeletedRows": text(b.deleted), "numCopiedRows": text(kept)}
	case "merge":
		return map[string]string{
			"numTargetRowsDeleted": text(b.deleted), "numTargetRowsUpdated": text(b.updated), "numTargetRowsInserted": text(b.rows - kept - b.updated), "numTargetRowsCopied": text(kept),
		}
	}
	return map[string]string{"numUpdatedRows": text(b.updated), "numCopiedRows": text(kept)}
}

// metrics are what a transaction has done.
func (b *batch) metrics(tx *transaction.Transaction) *sinkv1.CommitMetrics {
	m := &sinkv1.CommitMetrics{AddedFiles: int64(len(tx.Adds)), RemovedFiles: int64(len(tx.Removes)), AddedRows: b.rows}
	touched := map[string]struct{}{}
	for _, files := range [][]*log.Add{tx.Adds, tx.Removes} {
		for _, f := range files {
			key, err := b.plan.columns.Key(f.PartitionValues)
			if err != nil { // of a table whose partitioning was another one
				m.Partitions = -1
			}
			touched[key] = struct{}{}
		}
	}
	if m.Partitions == 0 {
		m.Partitions = int64(len(touched))
	}
	for _, f := range tx.Removes {
		n, _ := liveRows(f)
		m.RemovedRows += n
	}
	return m
}
