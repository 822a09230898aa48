package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/plugins/scaffold"
)

func (a *app) sinkNewCommand() *cobra.Command {
	o := scaffold.Options{Version: Version}
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Make the project of a new sink, which builds, passes the conformance suite and commits a real job", Args: cobra.ExactArgs(1),
		Long: "Make the project of a new sink in a directory of its own: a sink that stores tables as directories of Parquet files with numbered manifests, its\n" +
			"tests, and a Makefile that builds it, tests it and runs a real INSERT. Change it into yours.\n\n" +
			"A Go module requires the release of Signet that made it. Where this Signet is no release, or the project lies inside a checkout of Signet, it builds\n" +
			"against that checkout; --sdk names another.",
		Example: "  signet sink new parquetdir && make -C parquetdir test run\n  signet sink new parquetdir --lang python",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			dir, err := scaffold.New(cmd.Context(), o, a.streams.Err)
			if errors.Is(err, scaffold.ErrUsage) {
				return &exitError{code: ExitUsage, err: err}
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.streams.Out, "made %s; `make -C %s test run` tests it and commits a job with it\n", dir, dir)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Language, "lang", scaffold.Go, "language: go or python")
	f.StringVar(&o.Dir, "dir", "", "directory of the project, which must not exist (default: NAME)")
	f.StringVar(&o.Module, "module", "", "path of the Go module (default: signet-sink-NAME)")
	f.StringVar(&o.SDK, "sdk", "", "checkout of Signet to build a Go module against, instead of a release")
	return cmd
}
