package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/signet-io/signet/plugins/host"
	"github.com/signet-io/signet/plugins/sinktest"
	"github.com/signet-io/signet/plugins/sinktest/icecatalog"
)

// conformConfig is what `signet sink test --config` reads.
type conformConfig struct {
	Properties   map[string]string        `yaml:"properties"`
	Without      map[string]string        `yaml:"without"`
	NoPartitions string                   `yaml:"no_partitions"`
	EmptyIsNull  bool                     `yaml:"empty_partition_is_null"`
	Secrets      map[string]conformSecret `yaml:"secrets"`
	Dial         map[string]string        `yaml:"dial"`
	AllowEnv     []string                 `yaml:"allow_env"`
	AllowRead    []string                 `yaml:"allow_read"`
	Isolation    string                   `yaml:"isolation"`
	Limits       struct {
		Call   time.Duration `yaml:"call"`
		Large  time.Duration `yaml:"large"`
		End    time.Duration `yaml:"end"`
		Memory int64         `yaml:"memory"`
	} `yaml:"limits"`
}

// conformSecret is a secret for the sink, or where it is.
type conformSecret struct {
	File  string `yaml:"file"`
	Env   string `yaml:"env"`
	Value string `yaml:"value"`
}

func (s conformSecret) read() (string, error) {
	switch {
	case s.File != "":
		raw, err := os.ReadFile(s.File)
		return strings.TrimSuffix(string(raw), "\n"), err
	case s.Env != "":
		v, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("the variable %s is not set", s.Env)
		}
		return v, nil
	case s.Value != "":
		return s.Value, nil
	}
	return "", errors.New("want one of file, env and value")
}

// isolations are the values of --isolation.
var isolations = map[string]host.Isolation{"": host.IsolationAuto, "auto": host.IsolationAuto, "none": host.IsolationNone}

func (a *app) sinkTestCommand() *cobra.Command {
	var file, pattern, isolation string
	var asJSON, list, verbose bool
	var allowEnv, allowRead []string
	cmd := &cobra.Command{
		Use: "test PATH", Short: "Test a sink: run the conformance suite against an executable in any language",
		Long: "Start a sink's executable as the scheduler starts it (handshake, mutual TLS, isolation, environment), drive it through the life of many jobs with\n" +
			"crashes, conflicts, lost replies, cancels and damaged input, and report by capability what holds and what does not.\n\n" +
			"PATH is a binary, or a script with an interpreter line; it gets no arguments, as in production. Its name is what it calls itself.\n" +
			"The exit code is 1 if a check failed. docs/conformance.md explains every check.",
		Example: "  signet sink test ./signet-sink-mine\n  signet sink test --run '^commit-' --json ./signet-sink-mine",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listChecks(asJSON)
			}
			if len(args) == 0 {
				return usageError("name the sink's executable: signet sink test PATH")
			}
			o, err := conformOptions(file, isolation)
			if err != nil {
				return err
			}
			o.AllowEnv, o.AllowRead = append(o.AllowEnv, allowEnv...), append(o.AllowRead, allowRead...)
			if pattern != "" {
				if o.Run, err = regexp.Compile(pattern); err != nil {
					return usageError("--run: %v", err)
				}
			}
			return a.conform(cmd.Context(), args[0], o, asJSON, verbose)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "what the sink's tables need: YAML or JSON")
	f.StringVar(&pattern, "run", "", "run only checks whose name matches the regular expression")
	f.StringVar(&isolation, "isolation", "", "auto: what this system allows; none (default: auto)")
	f.StringSliceVar(&allowEnv, "allow-env", nil, "variable that is passed on to the sink; may be repeated")
	f.StringSliceVar(&allowRead, "allow-read", nil, "file or directory that the sink may read: an interpreter's packages; may be repeated")
	f.BoolVar(&asJSON, "json", false, "one JSON document for machines")
	f.BoolVar(&list, "list", false, "list the checks")
	f.BoolVarP(&verbose, "verbose", "v", false, "times, notes, and why checks were left out")
	return cmd
}

func conformOptions(file, isolation string) (sinktest.Options, error) {
	var c conformConfig
	var o sinktest.Options
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return o, &exitError{code: ExitUsage, err: err}
		}
		defer f.Close()
		dec := yaml.NewDecoder(f)
		dec.KnownFields(true)
		if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
			return o, usageError("%s: %v", file, err)
		}
	}
	if isolation == "" {
		isolation = c.Isolation
	}
	level, ok := isolations[isolation]
	if !ok {
		return o, usageError("isolation %q: want auto or none", isolation)
	}
	for name := range c.Without {
		if !sinktest.KnownType(name) {
			return o, usageError("%s: without: there is no type %q; the types are %s", file, name, strings.Join(sinktest.TypeNames(), ", "))
		}
	}
	o = sinktest.Options{
		Properties: c.Properties, Without: c.Without, NoPartitions: c.NoPartitions, EmptyIsNull: c.EmptyIsNull, Dial: c.Dial, Secrets: map[string]string{},
		AllowEnv: c.AllowEnv, AllowRead: c.AllowRead, Isolation: level,
		Limits: sinktest.Limits{Call: c.Limits.Call, Large: c.Limits.Large, End: c.Limits.End, Memory: c.Limits.Memory},
	}
	for name, s := range c.Secrets {
		v, err := s.read()
		if err != nil {
			return o, usageError("%s: secret %s: %v", file, name, err)
		}
		o.Secrets[name] = v
	}
	return o, nil
}

func (a *app) listChecks(asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(a.streams.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(sinktest.Checks())
	}
	for _, c := range sinktest.Checks() {
		if _, err := fmt.Fprintf(a.streams.Out, "%-10s %s\n", c.Capability, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// conform runs the suite. While it runs, a terminal shows which check is under way.
func (a *app) conform(ctx context.Context, path string, o sinktest.Options, asJSON, verbose bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return withHint(ExitUsage, err, "name the executable of a sink")
	case info.IsDir():
		return withHint(ExitUsage, fmt.Errorf("%s is a directory", path), "name the executable of a sink: build it first")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-a.signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	dir, err := os.MkdirTemp("", "signet-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Catalog = icecatalog.In(dir)
	report, err := sinktest.Verify(ctx, sinktest.Command(path), o, nil)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return &exitError{code: ExitUsage, err: err}
	case asJSON:
		err = report.WriteJSON(a.streams.Out)
	default:
		err = report.WriteText(a.streams.Out, verbose)
	}
	if err == nil && !report.Conforms {
		err = &exitError{code: ExitFailed, err: fmt.Errorf("%d of %d checks failed", report.Failed, report.Failed+report.Passed)}
	}
	return err
}
