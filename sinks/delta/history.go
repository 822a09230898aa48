package delta

import (
	"context"
	"errors"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
)

// historyBatch is the most that goes into one message of a history.
const historyBatch = 1000

// History implements sdk.Historian.
func (s *Sink) History(ctx context.Context, req *sinkv1.HistoryRequest, send func(*sinkv1.HistoryResponse) error) error {
	ref := req.GetTable()
	t, err := s.existing(ctx, ref)
	if err != nil {
		return err
	}
	entries, err := log.History(ctx, t.store, int(req.GetLimit()))
	if errors.Is(err, log.ErrNoTable) {
		err = sdk.Refuse(sdk.NotFound, "table %s does not exist any more", tableName(ref))
	}
	if err != nil {
		return refused(ref, err)
	}
	msg := &sinkv1.HistoryResponse{}
	for _, e := range entries {
		if len(msg.GetEntries()) == historyBatch {
			if err := send(msg); err != nil {
				return err
			}
			msg = &sinkv1.HistoryResponse{}
		}
		msg.Entries = append(msg.Entries, historyEntry(e))
	}
	return send(msg)
}

func historyEntry(e log.HistoryEntry) *sinkv1.HistoryEntry {
	out := &sinkv1.HistoryEntry{Version: versionOf(e.Version), TimestampMillis: &e.Timestamp}
	i := e.Info
	if i == nil {
		return out
	}
	out.Operation, out.Parameters, out.Metrics, out.ReadVersion, out.BlindAppend = i.Operation, i.OperationParameters, i.OperationMetrics, i.ReadVersion, i.IsBlindAppend
	out.IsolationLevel, out.Engine, out.UserMetadata, out.CommitId = text(i.IsolationLevel), text(i.EngineInfo), text(i.UserMetadata), text(i.TxnID)
	return out
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
