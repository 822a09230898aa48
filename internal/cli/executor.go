package cli

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/scheduler/launcher"
)

// executorCommand becomes signet-executor: DuckDB needs cgo and lives in a binary of its own.
func (a *app) executorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "executor [FLAGS]", Short: "Run an executor (signet-executor --help shows its flags), or drain one",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := launcher.FindBinary(os.Getenv("SIGNET_EXECUTORS_BINARY"))
			if err != nil {
				return withHint(ExitUsage, err, "install signet-executor beside signet, or name it in SIGNET_EXECUTORS_BINARY")
			}
			err = syscall.Exec(path, append([]string{path}, args...), os.Environ())
			return &exitError{code: ExitUsage, err: fmt.Errorf("%s: %w", path, err)}
		},
	}
	cmd.AddCommand(a.drainCommand())
	return cmd
}

func (a *app) drainCommand() *cobra.Command {
	var reason string
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "drain ID", Short: "Give an executor no more tasks and let it leave", Args: cobra.ExactArgs(1),
		Long: "Give an executor no more tasks. What it runs ends, what others read from it stays until they have it, and then its process ends with code 0.\n" +
			"ID is its id as `signet info` shows it, or the beginning of one. With --limit it leaves after that time in any case: its tasks run again\n" +
			"elsewhere, and what was still needed is made again.\n\n" +
			"Executors that the scheduler itself starts (executors.local) are started again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usageError("--limit %s: want more than 0, or leave it out", limit)
			}
			return a.withSession(cmd.Context(), func(ctx context.Context, s *session) error {
				id, err := s.DrainExecutor(ctx, args[0], reason, limit)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.streams.Out, "draining %s\n", id)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "for its log")
	cmd.Flags().DurationVar(&limit, "limit", 0, "leave after this time in any case")
	a.connectionFlags(cmd)
	return cmd
}
