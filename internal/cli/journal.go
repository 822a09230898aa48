package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/journal"
)

func (a *app) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "journal", Short: "Look at a scheduler's journal, and save what is left of a damaged one", Args: cobra.NoArgs,
		Long: "A scheduler keeps its jobs in DATA_DIR/journal.db. These commands need it stopped: they take the journal's lock.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.journalCheckCommand(), a.journalSalvageCommand())
	return cmd
}

func (a *app) journalCheckCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Read a whole journal and say what is wrong with it", Args: cobra.ExactArgs(1),
		Long:    "Read a whole journal, verify every page and every record's checksum, and change nothing. The exit code is 1 if anything is wrong.",
		Example: "  signet journal check /var/lib/signet/journal.db",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := knownOutput(output); err != nil {
				return err
			}
			r, err := journal.Check(args[0])
			if err != nil {
				return err
			}
			if err := a.show(output, r, r.Summary()); err != nil {
				return err
			}
			if r.Damage > 0 {
				return withHint(ExitFailed, fmt.Errorf("journal %s: %w", args[0], journal.ErrDamaged), "save what is left with: signet journal salvage FILE NEW")
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	return cmd
}

func (a *app) journalSalvageCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "salvage FILE NEW", Short: "Copy what can be read of a journal to a new one", Args: cobra.ExactArgs(2),
		Long: "Copy every record that is whole to a new journal, which then takes the old one's place. Open jobs of which something is lost begin anew; one that had\n" +
			"committed finds its marker in the table and ends without writing again. Jobs whose own record is lost are forgotten.",
		Example: "  signet journal salvage journal.db saved.db && mv journal.db damaged.db && mv saved.db journal.db",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := knownOutput(output); err != nil {
				return err
			}
			s, err := scheduler.SalvageJournal(args[0], args[1])
			if err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString(s.Damaged.Summary())
			for _, id := range s.Again {
				fmt.Fprintf(&b, "  job %s begins anew\n", id)
			}
			if s.Strays > 0 {
				fmt.Fprintf(&b, "  %d records of jobs that are lost were left out\n", s.Strays)
			}
			fmt.Fprintf(&b, "%s has what is left; to go on with it, put it in the place of %s\n", args[1], args[0])
			return a.show(output, s, b.String())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	return cmd
}

func knownOutput(output string) error {
	if !slices.Contains([]string{"text", "json"}, output) {
		return usageError("--output %q: want text or json", output)
	}
	return nil
}

// show writes a result as text or as JSON.
func (a *app) show(output string, v any, text string) error {
	if output == "json" {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		text = string(b) + "\n"
	}
	_, err := fmt.Fprint(a.streams.Out, text)
	return err
}
