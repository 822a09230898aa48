package cli

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signet-io/signet/internal/pki"
	"github.com/signet-io/signet/scheduler/config"
)

// initialised is what `signet init` is asked for.
type initialised struct {
	dir   string
	hosts []string
	name  string
	days  int
	port  int
}

func (a *app) initCommand() *cobra.Command {
	var i initialised
	cmd := &cobra.Command{
		Use: "init DIR", Short: "Make certificates, tokens and a configuration for a cluster", Args: cobra.ExactArgs(1),
		Long: "Make what a cluster needs that others can reach: a certificate authority, certificates for the scheduler, its executors and a client, a join token, an\n" +
			"operator's token, and a configuration that asks for all of them. The directory must be empty or new. Nothing is started; the commands that do it are printed.\n\n" +
			"Hosts are the names and addresses by which the scheduler, and executors that others fetch rows from, are reached; the first is the scheduler's. Without any\n" +
			"the cluster is for this machine only.",
		Example: "  signet init /etc/signet --host sched.example.org,10.0.0.5 --name production",
		RunE: func(_ *cobra.Command, args []string) error {
			i.dir = args[0]
			return a.initialise(i)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&i.hosts, "host", nil, "names and addresses of the cluster's machines, separated by commas; the scheduler's first")
	f.StringVar(&i.name, "name", "default", "the cluster's name, which marks its commits in tables: 1 to 40 of a-z, 0-9 and -")
	f.IntVar(&i.days, "days", 825, "how long the certificates are valid")
	f.IntVar(&i.port, "port", 7070, "port of the scheduler")
	return cmd
}

// maxDays of a certificate: ten years.
const maxDays = 3650

func (i *initialised) check() error {
	if i.days < 1 || i.days > maxDays {
		return usageError("--days %d: want 1 to %d", i.days, maxDays)
	}
	if i.port < 1 || i.port > 65535 {
		return usageError("--port %d: want 1 to 65535", i.port)
	}
	for n, h := range i.hosts {
		i.hosts[n] = strings.TrimSpace(h)
		if err := pki.CheckHost(i.hosts[n]); err != nil {
			return usageError("--host: %w", err)
		}
	}
	dir, err := filepath.Abs(i.dir)
	if err != nil {
		return usageError("%s: %w", i.dir, err)
	}
	i.dir = dir
	return nil
}

func (a *app) initialise(i initialised) error {
	if err := i.check(); err != nil {
		return err
	}
	files, err := i.files(time.Now())
	if err != nil {
		return &exitError{code: ExitUsage, err: err}
	}
	undo, err := writeNew(i.dir, files)
	if err == nil {
		err = i.validate()
	}
	if err != nil {
		return &exitError{code: ExitUsage, err: errors.Join(err, undo())}
	}
	_, err = fmt.Fprint(a.streams.Out, i.said())
	return err
}

// Files that init makes, by their names below its directory.
const (
	configFile  = "signet.yaml"
	caFile      = "tls/ca.pem"
	caKeyFile   = "tls/ca.key"
	joinFile    = "tokens/join"
	adminFile   = "tokens/admin"
	adminName   = "admin"
	scratchName = "scratch"
)

// files are all that is made, in memory.
func (i *initialised) files(now time.Time) (map[string][]byte, error) {
	ca, err := pki.NewAuthority("signet "+i.name, now, i.days)
	if err != nil {
		return nil, fmt.Errorf("--name: %w", err)
	}
	out := map[string][]byte{caFile: ca.Pair().Cert, caKeyFile: ca.Pair().Key, joinFile: newToken(), adminFile: newToken(), configFile: []byte(i.config())}
	hosts := i.allHosts()
	for file, s := range map[string]pki.Subject{
		"server":   {Name: "scheduler", Hosts: hosts, Server: true},
		"executor": {Name: "executor", Hosts: hosts, Server: true, Client: true}, // others fetch rows from executors
		"client":   {Name: adminName, Client: true},
	} {
		p, err := ca.Issue(s, now, i.days)
		if err != nil {
			return nil, err
		}
		out["tls/"+file+".pem"], out["tls/"+file+".key"] = p.Cert, p.Key
	}
	return out, nil
}

// newToken has 256 bits.
func newToken() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return []byte(hex.EncodeToString(b) + "\n")
}

// allHosts are those given and this machine's own names for itself.
func (i *initialised) allHosts() []string {
	out := slices.Clone(i.hosts)
	for _, h := range []string{"127.0.0.1", "localhost", "::1"} {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// local says that nobody else is to reach the cluster.
func (i *initialised) local() bool {
	return !slices.ContainsFunc(i.hosts, func(h string) bool { return !config.IsLoopback(h) })
}

func (i *initialised) listen() string {
	port := strconv.Itoa(i.port)
	switch {
	case i.local():
		return "127.0.0.1:" + port
	case slices.ContainsFunc(i.hosts, func(h string) bool { return strings.Contains(h, ":") }):
		return "[::]:" + port
	}
	return "0.0.0.0:" + port
}

func (i *initialised) address() string {
	host := "127.0.0.1"
	if !i.local() {
		host = i.hosts[0]
	}
	return net.JoinHostPort(host, strconv.Itoa(i.port))
}

// config is the configuration. Paths are relative to it, so that the directory may be moved, except in the catalog, whose tables hold full paths anyway.
func (i *initialised) config() string {
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) } // never fails; JSON is YAML
	return fmt.Sprintf(`# Made by `+"`signet init`"+`. docs/configuration.md describes all keys.
data_dir: data
listen: %s
cluster: %s
tls: {cert: tls/server.pem, key: tls/server.key, client_ca: %s, ca: %s}
auth:
  join_token: {file: %s}                  # executors show it
  tokens:                                      # clients show one
    - {principal: %s, token: {file: %s}, operator: true}
catalogs:
  lake:
    type: sql
    uri: %s
    warehouse: %s
sources:
  deny: [tls, tokens]                          # no statement reads these
executors: {local: 0}                          # they are started apart
`, q(i.listen()), q(i.name), caFile, caFile, joinFile, adminName, adminFile, q("sqlite://"+filepath.Join(i.dir, "data", "catalog.db")), q("file://"+filepath.Join(i.dir, "data", "warehouse")))
}

// validate reads the configuration as a scheduler would.
func (i *initialised) validate() error {
	cfg, err := config.Load(filepath.Join(i.dir, configFile), nil, nil)
	if err != nil {
		return err
	}
	return cfg.CheckSecrets()
}

// said is what the command prints: commands that run as they are.
func (i *initialised) said() string {
	at := func(name string) string { return quoted(filepath.Join(i.dir, name)) }
	shows := func(name, token string) string {
		return fmt.Sprintf("--scheduler %s --tls-ca %s --tls-cert %s --tls-key %s --token-file %s", i.address(), at(caFile), at("tls/"+name+".pem"), at("tls/"+name+".key"), at(token))
	}
	out := fmt.Sprintf("The cluster %s is in %s. Its certificates are valid for %d days.\n\nScheduler:\n  signet scheduler --config %s\nExecutor:\n  signet executor %s --scratch %s\nClient:\n  signet sql %s \"SHOW CATALOGS\"\n\n",
		i.name, i.dir, i.days, at(configFile), shows("executor", joinFile), at(scratchName), shows("client", adminFile))
	if !i.local() {
		out += fmt.Sprintf("Executors on other machines take copies of %s, %s, %s and %s, and serve rows to each other with\n  --exchange-listen 0.0.0.0:7071 --exchange-address HOST --exchange-tls-cert executor.pem --exchange-tls-key executor.key\nwhere HOST is one of --host.\n",
			caFile, "tls/executor.pem", "tls/executor.key", joinFile)
	}
	return out + fmt.Sprintf("Whoever has %s can make certificates of this cluster. Nothing that runs needs it: keep it elsewhere.\n", filepath.Join(i.dir, caKeyFile))
}

// quoted is a word of a POSIX shell.
func quoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// writeNew writes files, for the owner only, below a directory that must be empty or new. undo removes what was made.
func writeNew(dir string, files map[string][]byte) (undo func() error, err error) {
	var made []string
	undo = func() error {
		var errs []error
		for _, p := range slices.Backward(made) {
			errs = append(errs, os.Remove(p))
		}
		return errors.Join(errs...)
	}
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // parents that are not there yet are nobody's secret
			return undo, err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return undo, err
		}
		made = append(made, dir)
	case err != nil:
		return undo, err
	case len(list) > 0:
		return undo, fmt.Errorf("%s is not empty: it has %s. A cluster's keys are never written over; name a new directory", dir, list[0].Name())
	}
	dirs := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if sub := filepath.Dir(path); sub != dir && !dirs[sub] {
			if err := os.Mkdir(sub, 0o700); err != nil {
				return undo, err
			}
			dirs[sub], made = true, append(made, sub)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return undo, err
		}
		made = append(made, path)
		_, err = f.Write(files[name])
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return undo, err
		}
	}
	return undo, nil
}
