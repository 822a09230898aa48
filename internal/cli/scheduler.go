package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/internal/heapfloor"
	"github.com/signet-io/signet/scheduler/config"
)

func (a *app) schedulerCommand() *cobra.Command {
	var file, listen, dataDir string
	cmd := &cobra.Command{
		Use: "scheduler", Short: "Run a scheduler", Args: cobra.NoArgs,
		Long: "Run a scheduler until SIGTERM or Ctrl-C. Open jobs stay in its journal and go on at the next start.\n\n" +
			"Standard output gets one line, `listening on HOST:PORT`, once it serves, and further ones, `flight sql on HOST:PORT` and\n" +
			"`http on HOST:PORT`, for what is configured; logs go to standard error.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(file, map[string]any{"listen": listen, "data_dir": dataDir})
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration, YAML; none: defaults and SIGNET_* variables")
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on; over the configuration's")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data directory; over the configuration's")
	return cmd
}

// heapFloor is the garbage that a scheduler leaves alone, in bytes.
const heapFloor = 32 << 20

// serve runs a scheduler and its local executors until a signal.
func (a *app) serve(ctx context.Context, cfg *config.Config) (err error) {
	lock, err := lockDir(cfg.DataDir)
	if err != nil {
		return withHint(ExitUnreachable, err, "one scheduler at a time may use a data directory")
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	log := newLogger(a.streams.Err, cfg.Log)
	heapfloor.Set(heapFloor)
	s, err := startScheduler(ctx, cfg, log, 0)
	if err != nil {
		return &exitError{code: ExitUnreachable, err: err}
	}
	stop := s.Stop
	if cfg.Executors.Local > 0 {
		join := ""
		if token := cfg.Auth.LocalJoin(); !token.IsZero() {
			if join, err = token.Resolve(); err != nil {
				return errors.Join(err, stop(expired()))
			}
		}
		executors, err := startExecutors(cfg, s, join, filepath.Join(cfg.DataDir, "run"), log)
		if err != nil {
			return errors.Join(err, stop(expired()))
		}
		stop = func(ctx context.Context) error { return errors.Join(s.Stop(ctx), executors.Stop(ctx)) }
		go func() { // ends with the process
			log.Error("executors cannot start", "error", <-executors.Failed())
		}()
	}
	if _, err := fmt.Fprintf(a.streams.Out, "listening on %s\n", s.Addr()); err != nil {
		return errors.Join(err, stop(expired()))
	}
	if at := s.FlightAddr(); at != "" {
		fmt.Fprintf(a.streams.Out, "flight sql on %s\n", at)
	}
	if at := s.HTTPAddr(); at != "" {
		fmt.Fprintf(a.streams.Out, "http on %s\n", at)
	}
	select {
	case sig := <-a.signals:
		log.Info("stopping", "signal", sig.String())
	case <-s.Done():
		log.Error("the scheduler ended by itself")
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Timeouts.Drain)
	defer cancel()
	go func() {
		<-a.signals
		log.Warn("stopping at once")
		cancel()
	}()
	if err := stop(drain); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	if strings.EqualFold(cfg.Format, "json") {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
