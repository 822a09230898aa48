package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

// CreateTable implements sdk.TableCreator: it creates version 0 of the log, which one writer only can.
func (s *Sink) CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	ref := req.GetTable()
	t, err := s.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !t.missing {
		return nil, exists(ref)
	}
	d, err := define(req.GetDefinition(), s.now())
	if err == nil {
		err = placed(req.GetDefinition(), t.location)
	}
	if err != nil {
		return nil, permanent(ref, err)
	}
	tx := &transaction.Transaction{Metadata: &d.Metadata, Protocol: &d.Protocol, Operation: transaction.Created(&d.Metadata, false, false), EngineInfo: engine()}
	if _, err := s.put(ctx, t, tx); errors.Is(err, sdk.ErrConflict) {
		return nil, exists(ref)
	} else if err != nil {
		return nil, refused(ref, err)
	}
	_, warnings := fileRules(d.Metadata.Configuration)
	return &sinkv1.CreateTableResponse{TableUuid: d.Metadata.ID, Location: t.location, Warnings: warnings}, nil
}

func exists(ref *sinkv1.TableRef) error {
	return sdk.Refuse(sdk.Exists, "table %s exists already", tableName(ref))
}

func engine() string { return "Signet/" + Version }

// placed refuses a definition with another location than the one where the host has the table. The spellings of one place are the same.
func placed(d *sinkv1.TableDefinition, location string) error {
	if l := strings.TrimRight(d.GetLocation(), "/"); l != "" && uri.Key(l) != uri.Key(location) {
		return fmt.Errorf("location %s: the catalog has the table at %s only", d.GetLocation(), location)
	}
	return nil
}

// put creates the next version of the log for a statement that defines a table. There is no seal: whether a commit whose answer was lost has landed is seen by its txnId.
func (s *Sink) put(ctx context.Context, t *table, tx *transaction.Transaction) (version int64, err error) {
	c := log.Commit{}
	if !t.missing {
		c.Version = t.Version + 1
	}
	id := uuid.NewString()
	if c.Actions, err = tx.Build(t.Snapshot, s.now(), id); err != nil {
		return 0, err
	}
	body, err := encode(c.Actions)
	if err != nil {
		return 0, err
	}
	if err := hit("delta.define.before-send"); err != nil {
		return 0, err
	}
	_, err = t.store.host.PutIfAbsent(ctx, t.store.uri(log.CommitName(c.Version)), body)
	if lost := fault.Hit("delta.define.after-send"); err == nil && lost != nil {
		err = lost
	}
	if err != nil && !errors.Is(err, sdk.ErrPermanent) {
		if err = t.ours(ctx, c.Version, id, err); err != nil {
			return 0, err
		}
	}
	if err != nil {
		return 0, err
	}
	s.landed(ctx, t, c)
	return c.Version, nil
}

// ours looks whether a version whose creation ended with err is the commit with this txnId: nil if it is, and a conflict if it is another one.
func (t *table) ours(ctx context.Context, version int64, txnID string, err error) error {
	c, lookErr := log.ReadCommit(ctx, t.store, version)
	if lookErr != nil { // not there, or not to be seen
		if errors.Is(err, sdk.ErrExists) || errors.Is(err, sdk.ErrConflict) {
			return fmt.Errorf("%w (%w)", lookErr, err)
		}
		return err
	}
	if info := c.Info(); info != nil && info.TxnID != nil && *info.TxnID == txnID {
		return nil
	}
	return sdk.Refuse(sdk.Conflict, "version %d was taken by another commit", version)
}
