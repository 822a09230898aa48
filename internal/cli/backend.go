package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/config"
)

// cluster is a running scheduler as this package needs it.
type cluster interface {
	Addr() string
	// FlightAddr is where Flight SQL is served; "" if it is not.
	FlightAddr() string
	// HTTPAddr is where the REST API is served; "" if it is not.
	HTTPAddr() string
	Done() <-chan struct{}
	// ExecutorExited tells that a local executor process is gone, so that its work moves at once.
	ExecutorExited(pid int)
	// Stop ends it; sealed commits get until ctx ends to settle.
	Stop(ctx context.Context) error
}

// journalWait covers the moment in which a killed scheduler still holds its journal.
const journalWait = 10 * time.Second

// startScheduler starts one. grace is how long executors of an earlier incarnation may take to come back; 0: the scheduler's default.
func startScheduler(ctx context.Context, cfg *config.Config, log *slog.Logger, grace time.Duration) (cluster, error) {
	return scheduler.Start(ctx, cfg, scheduler.Options{Version: Version, Logger: log, JournalWait: journalWait, ReconnectGrace: grace})
}
