package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/eventlog"
)

func (a *app) historyCommand() *cobra.Command {
	var output, dataDir, file string
	cmd := &cobra.Command{
		Use: "history FILE|JOB", Short: "Show what happened to a job, and when", Args: cobra.ExactArgs(1),
		Long: "Show the history of a job: its submission, plan, stages, task attempts, commit and end, with times.\n\n" +
			"A scheduler writes it to DATA_DIR/events/JOB.jsonl, where it stays as long as the job is remembered; a file that was copied elsewhere can be\n" +
			"read too. No scheduler needs to run.",
		Example: "  signet history 0198f3a2-6c1e-7c34-9d8a-4f1d2c3b4a59\n  signet history /var/lib/signet/events/0198f3a2-6c1e-7c34-9d8a-4f1d2c3b4a59.jsonl -o json",
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains([]string{"text", "json"}, output) {
				return usageError("--output %q: want text or json", output)
			}
			h, err := readHistory(args[0], file, dataDir)
			if err != nil {
				return err
			}
			if output == "text" {
				return h.WriteText(a.streams.Out)
			}
			b, err := json.Marshal(struct {
				Job string `json:"job"`
				*eventlog.History
			}{h.Records[0].Job, h})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.streams.Out, "%s\n", b)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "the scheduler's data directory, for a job's id (SIGNET_DATA_DIR; default: the user's data directory)")
	cmd.Flags().StringVar(&file, "config", "", "the scheduler's configuration, for a job's id")
	return cmd
}

// readHistory takes a file's name, or a job's id and the directory of its scheduler.
func readHistory(name, file, dataDir string) (*eventlog.History, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".jsonl") {
		return fileHistory(name, "")
	}
	if _, err := eventlog.Path("", name); err != nil {
		return nil, usageError("%q is neither a file nor a job's id", name)
	}
	if _, err := os.Stat(name); err == nil {
		return fileHistory(name, "")
	}
	dir, err := historyDir(file, dataDir)
	if err != nil {
		return nil, err
	}
	path, err := eventlog.Path(filepath.Join(dir, "events"), name)
	if err != nil {
		return nil, err
	}
	return fileHistory(path, "name the data directory of the job's scheduler with --data-dir")
}

// historyDir finds the data directory of a scheduler that need not be able to run here.
func historyDir(file, dataDir string) (string, error) {
	if dataDir != "" {
		return dataDir, nil
	}
	cfg, err := config.Load(file, settingVariables(), nil)
	if err != nil {
		return "", withHint(ExitUsage, err, "name the scheduler's data directory with --data-dir")
	}
	return cfg.DataDir, nil
}

func fileHistory(path, hint string) (*eventlog.History, error) {
	h, err := eventlog.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, withHint(ExitFailed, fmt.Errorf("there is no history at %s", path), hint)
	case err != nil:
		return nil, fmt.Errorf("history: %w", err)
	}
	return h, nil
}
