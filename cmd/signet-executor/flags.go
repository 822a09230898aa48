package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/executor"
	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/internal/pki"
)

// TokenEnv names the variable with the join token.
const TokenEnv = "SIGNET_JOIN_TOKEN"

// envPrefix starts the variables that set flags.
const envPrefix = "SIGNET_EXECUTOR_"

type options struct {
	config          executor.Config
	logLevel        slog.Level
	ignoreInterrupt bool
	parentPID       int
	version         bool
}

// parse reads flags and variables.
func parse(args []string, env func(string) (string, bool), out io.Writer) (*options, error) {
	fs := flag.NewFlagSet("signet-executor", flag.ContinueOnError)
	fs.SetOutput(out)
	o := &options{}
	var tokenFile, caFile, ownCert, ownKey, serverName, memory, minFree, cache, cert, key string
	var useTLS bool
	c := &o.config
	fs.StringVar(&c.Scheduler, "scheduler", "", "address of the scheduler, `host:port` (required)")
	fs.StringVar(&c.Scratch, "scratch", "", "`directory` for files in the making; best on the tables' file system (required)")
	fs.StringVar(&tokenFile, "token-file", "", "`file` with the join token; else "+TokenEnv)
	fs.StringVar(&caFile, "tls-ca", "", "use TLS, and trust the certificates in this PEM `file`")
	fs.BoolVar(&useTLS, "tls", false, "use TLS, and trust the system's certificates")
	fs.StringVar(&ownCert, "tls-cert", "", "PEM `file` with a certificate for a scheduler that asks for one")
	fs.StringVar(&ownKey, "tls-key", "", "PEM `file` with its private key")
	fs.StringVar(&serverName, "tls-server-name", "", "`name` to expect in the scheduler's certificate, if not the address")
	fs.StringVar(&c.Exchange.Listen, "exchange-listen", exchange.DefaultListen, "`address` at which other executors fetch what tasks leave for them; one that other machines reach needs a certificate")
	fs.StringVar(&c.Exchange.Advertise, "exchange-address", "", "`address` by which they reach it, host or host:port (default the one listened on)")
	fs.StringVar(&cert, "exchange-tls-cert", "", "PEM `file` with the certificate for that address; others verify it with their --tls-ca")
	fs.StringVar(&key, "exchange-tls-key", "", "PEM `file` with its private key")
	fs.StringVar(&memory, "memory", "", "memory for queries, over all slots, such as 4GiB (default 60 % of the machine's or container's)")
	fs.IntVar(&c.Slots, "slots", 0, "`number` of tasks at a time (default half the processors, at least 2)")
	fs.IntVar(&c.Threads, "threads", 0, "`number` of threads per task (default two per processor over all slots)")
	fs.StringVar(&minFree, "min-free", "256MiB", "scratch `space` below which no task starts; 0 for no check")
	fs.StringVar(&cache, "object-cache", "10GiB", "scratch `space` for files of object stores that later tasks may read again; 0 for none")
	fs.DurationVar(&c.Drain, "drain", 3*time.Second, "how long running tasks may finish, and their output be fetched, after SIGTERM")
	fs.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "DEBUG, INFO, WARN or ERROR")
	fs.BoolVar(&o.ignoreInterrupt, "ignore-interrupt", false, "ignore Ctrl-C: a parent process handles it")
	fs.IntVar(&o.parentPID, "parent-pid", 0, "end when this process, which must be the parent, is gone")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; signet-executor --help shows the flags", fs.Arg(0))
	}
	if err := fromEnv(fs, env); err != nil {
		return nil, err
	}
	if o.version {
		return o, nil
	}
	return o, errors.Join(
		o.readSizes(memory, minFree, cache),
		o.readToken(tokenFile, env),
		o.readTLS(useTLS, caFile, ownCert, ownKey, serverName),
		o.readExchangeTLS(cert, key),
	)
}

// fromEnv sets the flags that the command line did not.
func fromEnv(fs *flag.FlagSet, env func(string) (string, bool)) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var errs []error
	fs.VisitAll(func(f *flag.Flag) {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := env(name); ok && !given[f.Name] {
			if err := fs.Set(f.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s=%q: %w", name, v, err))
			}
		}
	})
	return errors.Join(errs...)
}

func (o *options) readSizes(memory, minFree, cache string) error {
	var err error
	if memory != "" {
		if o.config.MemoryBytes, err = parseSize(memory); err != nil {
			return fmt.Errorf("--memory: %w", err)
		}
	}
	if o.config.MinFreeBytes, err = parseSize(minFree); err != nil {
		return fmt.Errorf("--min-free: %w", err)
	}
	if o.config.MinFreeBytes == 0 {
		o.config.MinFreeBytes = -1
	}
	if o.config.ObjectCacheBytes, err = parseSize(cache); err != nil {
		return fmt.Errorf("--object-cache: %w", err)
	}
	if o.config.ObjectCacheBytes == 0 {
		o.config.ObjectCacheBytes = -1
	}
	return nil
}

func (o *options) readToken(file string, env func(string) (string, bool)) error {
	if file == "" {
		o.config.Token, _ = env(TokenEnv)
		return nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	if o.config.Token = strings.TrimSpace(string(b)); o.config.Token == "" {
		return fmt.Errorf("--token-file: %s is empty", file)
	}
	return nil
}

func (o *options) readTLS(use bool, caFile, cert, key, serverName string) error {
	if (cert == "") != (key == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if caFile == "" && !use {
		if cert != "" {
			return errors.New("--tls-cert is shown over TLS only: name the scheduler's certificate authority with --tls-ca, or say --tls")
		}
		return nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--tls-ca: no certificate in %s", caFile)
		}
	}
	if cert != "" {
		own, err := pki.Keep(cert, key, func(err error) { slog.Warn("the executor's own certificate", "error", err) })
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		own.Show(cfg)
	}
	o.config.TLS = cfg
	return nil
}

func (o *options) readExchangeTLS(cert, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return errors.New("--exchange-tls-cert and --exchange-tls-key go together")
	}
	pair, err := pki.Keep(cert, key, func(err error) { slog.Warn("the exchange's certificate", "error", err) })
	if err != nil {
		return fmt.Errorf("--exchange-tls-cert, --exchange-tls-key: %w", err)
	}
	o.config.Exchange.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	pair.Serve(o.config.Exchange.TLS)
	return nil
}

var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// parseSize reads a number of bytes, with or without a unit.
func parseSize(text string) (int64, error) {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*float64(unit) < math.MaxInt64) {
		return 0, fmt.Errorf("%q is no size; want a number of bytes such as 536870912, 512MiB or 4GB", text)
	}
	return int64(n * float64(unit)), nil
}
