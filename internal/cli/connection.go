package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/config"
)

// connection says where the scheduler is: at an address, or embedded in this process.
type connection struct {
	scheduler  string
	tokenFile  string
	caFile     string
	certFile   string
	keyFile    string
	serverName string
	retryFor   time.Duration
	poll       bool
	config     string
	dataDir    string
}

func (a *app) connectionFlags(cmd *cobra.Command) {
	c, f := &a.conn, cmd.Flags()
	f.StringVar(&c.scheduler, "scheduler", "", "address of a running scheduler, host:port (SIGNET_SCHEDULER); none: an embedded cluster")
	f.StringVar(&c.tokenFile, "token-file", os.Getenv("SIGNET_TOKEN_FILE"), "file with the bearer token for the scheduler (SIGNET_TOKEN_FILE)")
	f.StringVar(&c.caFile, "tls-ca", os.Getenv("SIGNET_TLS_CA"), "PEM file with the scheduler's certificate authority; turns TLS on (SIGNET_TLS_CA)")
	f.StringVar(&c.certFile, "tls-cert", os.Getenv("SIGNET_CLIENT_CERT"), "PEM file with a certificate for a scheduler that asks for one (SIGNET_CLIENT_CERT)")
	f.StringVar(&c.keyFile, "tls-key", os.Getenv("SIGNET_CLIENT_KEY"), "PEM file with its private key (SIGNET_CLIENT_KEY)")
	f.StringVar(&c.serverName, "tls-server-name", "", "name in the scheduler's certificate, where it is not the host")
	f.DurationVar(&c.retryFor, "retry-for", 30*time.Second, "how long a scheduler that stopped answering is tried again")
	f.BoolVar(&c.poll, "poll", false, "ask for a job's status again and again instead of subscribing to it, where the network cuts long streams")
	f.StringVar(&c.config, "config", "", "configuration of the embedded cluster, YAML")
	f.StringVar(&c.dataDir, "data-dir", "", "directory of the embedded cluster (SIGNET_DATA_DIR; default: the user's data directory)")
}

// session is a connection and what has to be stopped after it.
type session struct {
	*client.Client
	embedded bool
	broken   <-chan error // an embedded cluster that cannot go on; nil for a remote one
	close    func(ctx context.Context) error
}

// connect dials the scheduler, or starts a cluster with or without executors.
func (a *app) connect(ctx context.Context, executors bool) (*session, error) {
	embedded := a.conn.config != "" || a.conn.dataDir != ""
	switch {
	case a.conn.scheduler != "" && embedded:
		return nil, usageError("--scheduler names a running cluster, --config and --data-dir an embedded one: pass one or the other")
	case a.conn.scheduler == "" && !embedded:
		a.conn.scheduler = os.Getenv("SIGNET_SCHEDULER")
	}
	if a.conn.scheduler == "" {
		return a.embed(ctx, executors)
	}
	opts, err := a.conn.options()
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(a.conn.scheduler, opts...)
	if err != nil {
		return nil, &exitError{code: ExitUsage, err: err}
	}
	return &session{Client: c, close: func(context.Context) error { return c.Close() }}, nil
}

func (c *connection) options() ([]client.Option, error) {
	opts := []client.Option{client.WithRetry(c.retryFor)}
	if c.poll {
		opts = append(opts, client.WithPolling())
	}
	if c.tokenFile != "" {
		b, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, usageError("token: %w", err)
		}
		token := strings.TrimSpace(string(b))
		if token == "" {
			return nil, usageError("token: %s is empty", c.tokenFile)
		}
		opts = append(opts, client.WithToken(token))
	}
	if c.caFile != "" {
		opts = append(opts, client.WithCA(c.caFile))
	}
	switch {
	case (c.certFile == "") != (c.keyFile == ""):
		return nil, usageError("--tls-cert and --tls-key go together")
	case c.certFile != "":
		opts = append(opts, client.WithClientCert(c.certFile, c.keyFile))
	}
	if c.serverName != "" {
		opts = append(opts, client.WithServerName(c.serverName))
	}
	return opts, nil
}

// ownVariables are read by this package; the rest of SIGNET_* belongs to the configuration.
var ownVariables = []string{"SIGNET_SCHEDULER", "SIGNET_TOKEN_FILE", "SIGNET_TLS_CA", "SIGNET_CLIENT_CERT", "SIGNET_CLIENT_KEY", fault.Env}

// settingVariables are the variables that belong to the configuration.
func settingVariables() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(ownVariables, name)
	})
}

// loadConfig reads the configuration of a scheduler in this process. Flags go by their keys; empty ones are not set.
func loadConfig(path string, flags map[string]any) (*config.Config, error) {
	maps.DeleteFunc(flags, func(_ string, v any) bool { return v == "" })
	cfg, err := config.Load(path, settingVariables(), flags)
	if err == nil {
		err = cfg.CheckSecrets()
	}
	if err != nil {
		return nil, withHint(ExitUsage, err, "docs/configuration.md describes the keys")
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, withHint(ExitUsage, fmt.Errorf("data directory: %w", err), "name another with --data-dir")
	}
	return cfg, nil
}
