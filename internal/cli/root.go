package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/internal/tracing/export"
)

// app is what the commands share.
type app struct {
	streams Streams
	signals <-chan os.Signal // Ctrl-C and its relatives
	conn    connection
}

// Main runs the command line and returns the exit code. The signals are this process's Ctrl-C and its relatives.
func Main(args []string, signals <-chan os.Signal) int {
	// A reader that leaves early (`| head`) is an error of the write, not the death of a process that has children to stop.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx := context.Background()
	stop, err := export.Setup(ctx, "signet", Version)
	if err != nil {
		fmt.Fprintf(os.Stderr, "warning: no traces: %v\n", err)
	}
	code := Run(ctx, args, System(), signals)
	if err := stop(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "warning: traces: %v\n", err)
	}
	return code
}

// Run is Main over given streams and signals.
func Run(ctx context.Context, args []string, s Streams, signals <-chan os.Signal) int {
	a := &app{streams: s, signals: signals}
	root := a.root()
	root.SetArgs(statementsAreNoFlags(args))
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitOK // whoever read our output has had enough
	}
	report(s.Err, err)
	return exitCode(err)
}

// statementsAreNoFlags keeps statements that begin with a comment, like "-- hi", from being taken for flags: no flag's name has a space.
func statementsAreNoFlags(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") && strings.ContainsAny(name, " \t\r\n") {
			out[i] = " " + arg
		}
	}
	return out
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "signet",
		Short: "Distributed writes to table formats that commit exactly once",
		Long: "Signet runs SQL over many machines and commits what it writes to Iceberg tables exactly once.\n\n" +
			"Exit codes: 0 ok, 1 the statement failed, 2 wrong usage, 3 no scheduler, 4 cancelled, 5 the outcome is not known.",
		Example:       "  signet sql \"CREATE TABLE lake.demo.flights AS SELECT * FROM 'examples/data/flights.parquet'\"\n  signet sql \"SELECT origin, count(*) FROM lake.demo.flights GROUP BY 1\"",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{code: ExitUsage, err: err} })
	root.AddCommand(a.sqlCommand(), a.initCommand(), a.schedulerCommand(), a.executorCommand(), a.jobsCommand(), a.jobCommand(), a.cancelCommand(), a.historyCommand(), a.journalCommand(), a.checkCommand(), a.infoCommand(), a.sinkCommand(), a.versionCommand())
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.streams.Out) // which the next call keeps
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // it shows help for every argument, and calls that a success
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	argumentErrorsAreUsage(root)
	return root
}

// argumentErrorsAreUsage gives wrong arguments the exit code of wrong flags.
func argumentErrorsAreUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return withHint(ExitUsage, err, "`"+c.CommandPath()+" --help` shows the usage")
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		argumentErrorsAreUsage(c)
	}
}
