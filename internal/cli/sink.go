package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"

	"github.com/signet-io/signet/plugins/host"
)

func (a *app) sinkCommand() *cobra.Command {
	sink := &cobra.Command{
		Use: "sink", Short: "Sink plugins: make them, list them, lock them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dir string
	sink.PersistentFlags().StringVar(&dir, "dir", "", "plugin directory (default: plugins beside signet)")
	var output string
	list := &cobra.Command{
		Use: "list", Short: "List the plugins of the directory and whether plugins.lock allows them", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := pluginDir(dir)
			if err != nil {
				return err
			}
			return a.listSinks(d, output)
		},
	}
	list.Flags().StringVarP(&output, "output", "o", "table", "table, json, csv")
	lock := &cobra.Command{
		Use: "lock", Short: "Write plugins.lock: allow the plugins of the directory as they are now", Args: cobra.NoArgs,
		Long: "Write plugins.lock with the SHA-256 of every signet-sink-* in the directory. A scheduler starts only what is locked, and checks\n" +
			"the sum at each start. Lock only plugins whose source you trust.",
		RunE: func(*cobra.Command, []string) error {
			d, err := pluginDir(dir)
			if err != nil {
				return err
			}
			if err := host.WriteLock(d); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.streams.Out, "wrote %s\n", filepath.Join(d, host.LockFile))
			return err
		},
	}
	sink.AddCommand(list, lock, a.sinkNewCommand(), a.sinkTestCommand())
	return sink
}

// pluginDir is an existing directory, absolute.
func pluginDir(dir string) (string, error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		dir = filepath.Join(filepath.Dir(self), "plugins")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.ReadDir(dir); err != nil {
		return "", withHint(ExitUsage, fmt.Errorf("plugin directory: %w", err), "name one with --dir")
	}
	return dir, nil
}

func (a *app) listSinks(dir, output string) error {
	names, err := host.Discover(dir)
	if err != nil {
		return err
	}
	lock, err := host.ReadLock(dir)
	if errors.Is(err, fs.ErrNotExist) {
		lock, err = &host.Lock{}, nil
	}
	if err != nil {
		return err
	}
	text := arrow.BinaryTypes.String
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "sink", Type: text}, {Name: "version", Type: text}, {Name: "protocol", Type: arrow.PrimitiveTypes.Int64}, {Name: "state", Type: text},
	}, nil))
	defer b.Release()
	for _, name := range names {
		p, _ := lock.Find(name)
		b.Field(0).(*array.StringBuilder).Append(name)
		b.Field(1).(*array.StringBuilder).Append(p.Version)
		b.Field(2).(*array.Int64Builder).Append(int64(p.Protocol))
		b.Field(3).(*array.StringBuilder).Append(lockState(dir, name, lock))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return printBatch(a.streams.Out, output, rec)
}

// lockState says in a word whether a scheduler would start the plugin, and otherwise why not.
func lockState(dir, name string, lock *host.Lock) string {
	p, ok := lock.Find(name)
	if !ok {
		return "not locked; `signet sink lock --dir " + dir + "` allows it"
	}
	if err := (&host.Lock{Version: lock.Version, Plugins: []host.Locked{p}}).Verify(dir); err != nil {
		return "refused: " + err.Error()
	}
	return "locked"
}
