package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/checkup"
)

// checkPatience is how long the check of one catalog may take.
const checkPatience = 2 * time.Minute

func (a *app) checkCommand() *cobra.Command {
	var file, name, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Short: "Try the catalogs and stores of a configuration, and say what is wrong", Args: cobra.NoArgs,
		Long: "Read a configuration, and try what a scheduler and its executors will need: each catalog, the store its tables are in, the requests that are signed for\n" +
			"executors, sessions of their role, credentials that a catalog vends, the places that statements read, and what each principal may do. Nothing is changed\n" +
			"but a directory .signet-check-… below each warehouse, or below a table that credentials are vended for, which is removed again. The exit code is 1 if a step failed; a warning is no failure.",
		Example: "  signet check --config signet.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				output = "json"
			}
			if err := knownOutput(output); err != nil {
				return err
			}
			cfg, err := loadConfig(file, nil)
			if err != nil {
				return err
			}
			failed, steps := 0, 0
			err = scheduler.Check(cmd.Context(), cfg, name, checkPatience, func(s checkup.Step) {
				steps++
				if s.State == checkup.Failed {
					failed++
				}
				a.checked(output, s)
			})
			if err != nil {
				return err
			}
			if failed > 0 {
				return &exitError{code: ExitFailed, err: fmt.Errorf("%d of %d steps failed", failed, steps)}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration, YAML; none: defaults and SIGNET_* variables")
	cmd.Flags().StringVar(&name, "catalog", "", "one catalog only")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json: one document for each step")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --output json")
	return cmd
}

func (a *app) checked(output string, s checkup.Step) {
	if output == "json" {
		b, err := json.Marshal(s)
		if err == nil {
			fmt.Fprintf(a.streams.Out, "%s\n", b)
		}
		return
	}
	fmt.Fprintf(a.streams.Out, "%-8s %s: %s", s.State, s.Catalog, s.Name)
	if s.Detail != "" {
		fmt.Fprintf(a.streams.Out, ": %s", s.Detail)
	}
	fmt.Fprintln(a.streams.Out)
	if s.Where != "" {
		fmt.Fprintf(a.streams.Out, "         at: %s\n", s.Where)
	}
	if s.Fix != "" {
		fmt.Fprintf(a.streams.Out, "         to do: %s\n", s.Fix)
	}
}
