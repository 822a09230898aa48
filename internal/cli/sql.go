package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/internal/cli/format"
)

type sqlFlags struct {
	file            string
	plan            string
	output          string
	key             string
	catalog, schema string
	quiet           bool
	set             []string
	settings        map[string]string
}

func (a *app) sqlCommand() *cobra.Command {
	var f sqlFlags
	cmd := &cobra.Command{
		Use:   "sql [STATEMENT…]",
		Short: "Run SQL statements",
		Long: "Run SQL statements, in order, and stop at the first that fails. A statement may come as an argument, from a file (-f), or from\n" +
			"standard input (-). Several are separated by semicolons.\n\n" +
			"Without --scheduler an embedded cluster runs for as long as the command: catalog and tables lie in the data directory.\n\n" +
			"--idempotency-key names what must happen once: the same key with the same statement returns the same job, however often it is\n" +
			"sent. With several statements, statement n runs under KEY/n.\n\n" +
			"The first Ctrl-C cancels the job and says what happened; the second leaves at once.\n\n" +
			"Exit codes: 0 ok, 1 a statement failed, 2 wrong usage, 3 no scheduler, 4 cancelled, 5 the outcome is not known.",
		Example: "  signet sql \"SELECT 42\"\n  signet sql --output csv -f report.sql > report.csv\n  echo \"SHOW TABLES\" | signet sql --scheduler 127.0.0.1:7070 -",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.key == "" && cmd.Flags().Changed("idempotency-key") {
				// A script's unset variable would mean no key, and a retry that writes twice.
				return withHint(ExitUsage, errors.New("--idempotency-key is empty"), "an unset variable? Leave the flag out to run without a key")
			}
			return a.runSQL(cmd.Context(), args, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "file with statements; - is standard input")
	fl.StringVar(&f.plan, "plan", "", "file with a logical or a physical plan as JSON, instead of statements")
	fl.StringVarP(&f.output, "output", "o", "table", strings.Join(format.Kinds, ", "))
	fl.StringVar(&f.key, "idempotency-key", "", "what must happen once; see above")
	fl.StringVar(&f.catalog, "catalog", "", "catalog of names that give none")
	fl.StringVar(&f.schema, "schema", "", "schema of names that give none")
	fl.StringArrayVar(&f.set, "set", nil, "setting of the statements, NAME=VALUE, such as signet.planner=adaptive; may be repeated")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	a.connectionFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(format.Kinds, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// maxKey is the scheduler's limit.
const maxKey = 256

// keyOf is the key of one of several statements.
func (f sqlFlags) keyOf(i, statements int) string {
	if f.key == "" || statements == 1 {
		return f.key
	}
	return fmt.Sprintf("%s/%d", f.key, i+1)
}

func (a *app) runSQL(ctx context.Context, args []string, f sqlFlags) (err error) {
	if !slices.Contains(format.Kinds, f.output) {
		return usageError("--output %q: want one of %s", f.output, strings.Join(format.Kinds, ", "))
	}
	if f.settings, err = readSettings(f.set); err != nil {
		return err
	}
	statements, err := a.readInput(args, f)
	if err != nil {
		return err
	}
	if key := f.keyOf(len(statements)-1, len(statements)); len(key) > maxKey || strings.ContainsRune(key, 0) {
		return usageError("--idempotency-key: %d bytes; a key has at most %d, /n included, and no NUL", len(key), maxKey)
	}
	base, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	starting, stopWatching := a.untilInterrupted(ctx)
	s, err := a.connect(starting, true)
	if err != nil {
		stopWatching()
		return err
	}
	defer func() { a.end(s, err) }()
	if s.embedded {
		err = a.finishEarlier(starting, s)
	}
	if interrupted := stopWatching(); interrupted && err == nil {
		err = errInterrupted
	}
	if err != nil {
		return err
	}
	for i, st := range statements {
		r := &run{app: a, session: s, flags: f, statement: st, base: base, key: f.keyOf(i, len(statements))}
		if err := r.execute(ctx); err != nil {
			return st.at(err)
		}
		if r.stop && i+1 < len(statements) {
			return fmt.Errorf("%w: %d of %d statements ran", errInterrupted, i+1, len(statements))
		}
	}
	return nil
}

// readSettings reads --set NAME=VALUE. The scheduler knows which names there are.
func readSettings(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usageError("--set %q: want NAME=VALUE", s)
		}
		if _, twice := out[name]; twice {
			return nil, usageError("--set %s: it is set twice", name)
		}
		out[name] = strings.TrimSpace(value)
	}
	return out, nil
}

// end stops what connect started. After a second Ctrl-C there is no patience left.
func (a *app) end(s *session, cause error) {
	limit := 30 * time.Second
	if errors.Is(cause, errForced) {
		limit = 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() { // the next Ctrl-C ends the waiting
		select {
		case <-a.signals:
			cancel()
		case <-done:
		}
	}()
	if err := s.close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(a.streams.Err, "warning: stopping: %v\n", err)
	}
}

// untilInterrupted is a context that the first signal ends. stop returns whether one came, and leaves later signals to others.
func (a *app) untilInterrupted(ctx context.Context) (_ context.Context, stop func() bool) {
	started, cancel := context.WithCancelCause(ctx)
	quit, ended := make(chan struct{}), make(chan struct{})
	came := false
	go func() {
		defer close(ended)
		select {
		case <-a.signals:
			came = true
			cancel(errInterrupted)
		case <-quit:
		}
	}()
	return started, func() bool {
		close(quit)
		<-ended
		return came
	}
}
