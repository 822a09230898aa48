package cli

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/scheduler/launcher"
)

// executorCommand becomes signet-executor: DuckDB needs cgo and lives in a binary of its own.
func (a *app) executorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "executor [FLAGS]", Short: "Run an executor (signet-executor --help shows its flags)",
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
}
