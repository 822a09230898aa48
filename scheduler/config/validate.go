package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var clusterName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// Validate checks the whole and brings locations into their one form. Every problem is told, not only the first.
func (c *Config) Validate() error {
	v := &validator{}
	v.check(clusterName.MatchString(c.Cluster), "cluster", c.Cluster, "want 1 to 40 of a-z, 0-9 and -")
	v.check(filepath.IsAbs(c.DataDir) && c.DataDir != "/", "data_dir", c.DataDir, "want a directory of its own, as an absolute path")
	v.listen(c)
	v.http(c)
	v.flight(c)
	v.tls(c)
	v.tokens(c.Auth.Tokens)
	v.certificates(c)
	v.joinTokens(c.Auth.JoinTokens)
	v.oidc(&c.Auth)
	for _, name := range sortedKeys(c.Catalogs) {
		cat := c.Catalogs[name]
		v.catalog("catalogs."+name, &cat)
		c.Catalogs[name] = cat
	}
	v.sources(&c.Sources)
	for _, sink := range sortedKeys(c.Plugins.Dial) {
		for _, name := range sortedKeys(c.Plugins.Dial[sink]) {
			key := "plugins.dial." + sink + "." + name
			_, _, err := splitAddr(c.Plugins.Dial[sink][name])
			v.check(err == nil, key, c.Plugins.Dial[sink][name], "want host:port")
		}
	}
	v.pluginReads(c)
	v.executors(&c.Executors)
	v.dispatch(&c.Dispatch)
	v.timeouts(&c.Timeouts)
	v.limits(&c.Limits)
	v.receivers(c)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "text", "json")
	return errors.Join(v.errs...)
}

// pluginReads keeps what plugins may read apart from what is Signet's own: they are confined so that they see no secret.
func (v *validator) pluginReads(c *Config) {
	for _, sink := range sortedKeys(c.Plugins.Read) {
		key := "plugins.read." + sink
		for _, path := range c.Plugins.Read[sink] {
			if !v.check(filepath.IsAbs(path) && filepath.Clean(path) != "/", key, path, "want an absolute path below /, of an interpreter's installation for instance") {
				continue
			}
			for _, own := range c.OwnPaths() {
				apart := own == c.Plugins.Dir || !below(own, path) && !below(path, own)
				v.check(apart, key, path, "must be apart from "+own+", which is Signet's own")
			}
		}
	}
}

// below tells whether a path is a directory or lies in it.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

type validator struct{ errs []error }

func (v *validator) check(ok bool, key string, value any, fix string) bool {
	if !ok {
		v.errs = append(v.errs, fmt.Errorf("%s: %q: %s", key, fmt.Sprint(value), fix))
	}
	return ok
}

// say reports without a value: there is none, or it may hold a secret.
func (v *validator) say(key, problem string) {
	v.errs = append(v.errs, fmt.Errorf("%s: %s", key, problem))
}

func (v *validator) oneOf(key, value string, known ...string) {
	if !slices.Contains(known, value) {
		v.errs = append(v.errs, fmt.Errorf("%s: %q%s", key, value, suggest(value, known)))
	}
}

func splitAddr(addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(p)
	if err == nil && (port < 0 || port > 65535) {
		err = errors.New("port out of range")
	}
	return host, port, err
}

// IsLoopback says whether only this machine can reach a host. Names other than localhost count as reachable: what they resolve to
// may change.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Missing names what the configuration lacks for listening on an address; "" if nothing. Addresses that others can reach need TLS and tokens; where
// executors come to, one for them as well.
func (c *Config) Missing(listen string, executors bool) string {
	host, _, err := splitAddr(listen)
	if err != nil {
		return "the form host:port"
	}
	if IsLoopback(host) {
		return ""
	}
	var missing []string
	if !c.TLS.Enabled() {
		missing = append(missing, "tls.cert and tls.key")
	}
	if executors && !c.Auth.JoinAsked() {
		missing = append(missing, "auth.join_token")
	}
	if !c.Auth.Asked() {
		missing = append(missing, "auth.tokens")
	}
	return strings.Join(missing, ", ")
}

func (v *validator) listen(c *Config) {
	if c.Listen == "" {
		v.check(false, "listen", c.Listen, "want host:port, like 127.0.0.1:7070")
		return
	}
	v.listener(c, "listen", c.Listen, "127.0.0.1:7070", true)
}

// listener checks an address that is listened on; "" is off. executors: they come to it, too.
func (v *validator) listener(c *Config, key, listen, example string, executors bool) {
	if listen == "" {
		return
	}
	if _, _, err := splitAddr(listen); !v.check(err == nil, key, listen, "want host:port, like "+example) {
		return
	}
	missing := c.Missing(listen, executors)
	v.check(missing == "", key, listen, "others can reach this address, which needs "+missing+"; or listen on 127.0.0.1")
}

func (v *validator) tls(c *Config) {
	t := c.TLS
	if (t.Cert == "") != (t.Key == "") {
		v.say("tls", "cert and key belong together; only one of them is set")
	}
	if t.ClientCA != "" && t.Cert == "" {
		v.say("tls.client_ca", "needs tls.cert and tls.key")
	}
	v.files(map[string]string{"tls.cert": t.Cert, "tls.key": t.Key, "tls.client_ca": t.ClientCA})
}

// files are to be there; "" is none.
func (v *validator) files(paths map[string]string) {
	for _, key := range sortedKeys(paths) {
		if fi, err := os.Stat(paths[key]); paths[key] != "" && (err != nil || fi.IsDir()) {
			v.check(false, key, paths[key], "no such file")
		}
	}
}

func (v *validator) tokens(tokens []Token) {
	seen := map[string]bool{}
	for i, t := range tokens {
		key := fmt.Sprintf("auth.tokens[%d]", i)
		v.principal(key, t.Principal)
		v.check(!seen[t.Principal], key+".principal", t.Principal, "is there twice; each principal has one token")
		seen[t.Principal] = true
		if t.Token.IsZero() {
			v.say(key+".token", "missing; write {file: PATH} or {env: NAME}")
		}
	}
}

func (v *validator) catalog(key string, c *Catalog) {
	switch c.Type {
	case CatalogSQL:
		v.uri(key, c)
		v.place(key+".warehouse", &c.Warehouse)
		v.places(key, c)
		v.absent(key, "sql", map[string]string{"sink": c.Sink, "root": c.Root, "tls.ca": c.TLS.CA, "tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key})
		v.properties(key, c, "password")
		v.credentials(key+".credentials", c.Credentials, false)
	case CatalogREST:
		v.check(isURL(c.URI) == "", key+".uri", withoutUser(c.URI), "want the address in front of /v1, like https://catalog.example.org/api; secrets are written under secret")
		if strings.Contains(c.Warehouse, "://") {
			v.place(key+".warehouse", &c.Warehouse)
		}
		v.places(key, c)
		v.absent(key, "rest", map[string]string{"sink": c.Sink, "root": c.Root, "name": c.Name})
		v.properties(key, c)
		v.credentials(key+".credentials", c.Credentials, true)
		v.catalogTLS(key+".tls", c)
	case CatalogGlue:
		v.place(key+".warehouse", &c.Warehouse)
		v.places(key, c)
		v.absent(key, "glue", map[string]string{
			"uri": c.URI, "sink": c.Sink, "root": c.Root, "name": c.Name, "tls.ca": c.TLS.CA, "tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key,
		})
		v.properties(key, c)
		v.credentials(key+".credentials", c.Credentials, false)
		if c.Properties["glue.region"] == "" && c.Properties["s3.region"] == "" && c.Properties["glue.endpoint"] == "" {
			v.say(key+".properties.glue.region", "missing; the region of the Data Catalog, like eu-west-1")
		}
	case CatalogDelta:
		v.check(c.Sink == CatalogDelta, key+".sink", c.Sink, "is not for type delta")
		v.place(key+".root", &c.Root)
		v.places(key, c)
		v.absent(key, "delta", map[string]string{"uri": c.URI, "name": c.Name, "warehouse": c.Warehouse, "tls.ca": c.TLS.CA, "tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key})
		v.properties(key, c)
		v.credentials(key+".credentials", c.Credentials, false)
	case CatalogSink:
		v.check(validName(c.Sink), key+".sink", c.Sink, "want a sink's name, like minimal for the plugin signet-sink-minimal")
		v.location(key+".root", &c.Root)
		v.absent(key, "sink", map[string]string{"uri": c.URI, "name": c.Name, "warehouse": c.Warehouse, "tls.ca": c.TLS.CA, "tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key})
		if len(c.Properties) > 0 {
			v.say(key+".properties", "is not for type sink")
		}
		if c.Credentials != (Credentials{}) {
			v.say(key+".credentials", "is not for type sink")
		}
		if len(c.DataPaths) > 0 {
			v.say(key+".data_paths", "is not for type sink: its tables hold their files")
		}
		if len(c.AddFilesPaths) > 0 {
			v.say(key+".add_files_paths", "is not for type sink: its tables hold their files")
		}
		if len(c.Secret) > 0 {
			v.say(key+".secret", "is not for type sink; a sink's secrets are at plugins.secrets")
		}
	case "hive":
		v.say(key+".type", "hive: Hive metastores are not served; a catalog of type rest in front of one is, or sql (docs/configuration.md says what is missing)")
	default:
		v.oneOf(key+".type", c.Type, CatalogSQL, CatalogREST, CatalogGlue, CatalogDelta, CatalogSink)
	}
	v.maintenance(key, c)
	v.permissions(key, c)
}

func (v *validator) absent(key, kind string, fields map[string]string) {
	for _, f := range sortedKeys(fields) {
		v.check(fields[f] == "", key+"."+f, fields[f], "is not for type "+kind)
	}
}

// uri never repeats the address: somebody may have put a password into it.
func (v *validator) uri(key string, c *Catalog) {
	const want = "want sqlite:///dir/file.db or postgresql://user@host:port/database"
	scheme, rest, ok := strings.Cut(c.URI, "://")
	switch {
	case !ok:
		v.say(key+".uri", "not an address; "+want)
	case scheme == "sqlite":
		v.check(filepath.IsAbs(rest) && !strings.HasSuffix(rest, "/"), key+".uri", c.URI, "the path must be absolute; "+want)
		if _, has := c.Secret["password"]; has {
			v.say(key+".secret", "SQLite has no password")
		}
	case scheme == "postgresql" || scheme == "postgres":
		u, err := url.Parse(c.URI)
		if err != nil {
			v.say(key+".uri", "not an address; "+want)
			return
		}
		if _, has := u.User.Password(); has || u.Query().Has("password") {
			v.say(key+".uri", "holds a password; take it out and write secret: {password: {file: PATH}} or {env: NAME}")
		}
	default:
		v.say(key+".uri", fmt.Sprintf("scheme %q; %s", scheme, want))
	}
}

// withoutUser is an address without what may be a password.
func withoutUser(uri string) string {
	if _, rest, ok := strings.Cut(uri, "@"); ok {
		return "…@" + rest
	}
	return uri
}

func (v *validator) catalogTLS(key string, c *Catalog) {
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		v.say(key, "cert and key belong together; only one of them is set")
	}
	if c.TLS != (CatalogTLS{}) && !strings.HasPrefix(c.URI, "https://") {
		v.say(key, "needs a uri that begins with https://")
	}
	for name, p := range map[string]string{"ca": c.TLS.CA, "cert": c.TLS.Cert, "key": c.TLS.Key} {
		if fi, err := os.Stat(p); p != "" && (err != nil || fi.IsDir()) {
			v.check(false, key+"."+name, p, "no such file")
		}
	}
}

// places are those of a catalog besides its warehouse.
func (v *validator) places(key string, c *Catalog) {
	for i := range c.DataPaths {
		v.place(fmt.Sprintf("%s.data_paths[%d]", key, i), &c.DataPaths[i])
	}
	for i := range c.AddFilesPaths {
		v.place(fmt.Sprintf("%s.add_files_paths[%d]", key, i), &c.AddFilesPaths[i])
	}
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// azureContainer is a container, and the account's host where it is named.
var azureContainer = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9](@[a-z0-9]{3,24}(\.[a-z0-9.-]+)?)?$`)

var googleBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// place wants a local directory, or a prefix of a bucket, and brings it into its one form.
func (v *validator) place(key string, loc *string) {
	scheme, rest, ok := strings.Cut(*loc, "://")
	if !ok || scheme == "file" {
		v.location(key, loc)
		return
	}
	if scheme == "s3a" || scheme == "s3n" {
		scheme = "s3"
	}
	bucket, prefix, _ := strings.Cut(strings.TrimRight(rest, "/"), "/")
	isAzure := slices.Contains([]string{"abfs", "abfss", "wasb", "wasbs"}, scheme)
	switch {
	case scheme != "s3" && scheme != "gs" && !isAzure:
		v.check(false, key, *loc, "want file:///dir, s3://bucket/prefix, gs://bucket/prefix or abfss://container@account.dfs.core.windows.net/prefix")
	case isAzure && !azureContainer.MatchString(bucket):
		if strings.Count(bucket, "@") > 1 || strings.Contains(bucket, ":") { // somebody's password
			v.say(key, "want abfss://container@account.dfs.core.windows.net/prefix; keys are written under secret")
			return
		}
		v.check(false, key, *loc, "want abfss://container@account.dfs.core.windows.net/prefix, with a container of 3 to 63 of a-z, 0-9 and -")
	case isAzure && !slices.ContainsFunc(strings.Split(prefix, "/"), badSegment):
		*loc = strings.TrimSuffix(scheme+"://"+bucket+"/"+prefix, "/")
	case isAzure && prefix == "":
		*loc = scheme + "://" + bucket
	case !isAzure && strings.Contains(bucket, "@"):
		v.say(key, "must not hold a user or password; write "+scheme+"://bucket/prefix, and keys under secret")
	case scheme == "gs" && !googleBucket.MatchString(bucket):
		v.check(false, key, *loc, "want gs://bucket/prefix, with a bucket of 3 to 222 of a-z, 0-9, ., _ and -")
	case scheme == "s3" && !bucketName.MatchString(bucket):
		v.check(false, key, *loc, "want s3://bucket/prefix, with a bucket of 3 to 63 of a-z, 0-9, . and -")
	case prefix != "" && slices.ContainsFunc(strings.Split(prefix, "/"), badSegment):
		v.check(false, key, *loc, "must have no empty segment, no . and .. and no control character in its path")
	default:
		*loc = strings.TrimSuffix(scheme+"://"+bucket+"/"+prefix, "/")
	}
}

func badSegment(s string) bool {
	return s == "" || s == "." || s == ".." || strings.ContainsFunc(s, unicode.IsControl)
}

// location wants a local directory and makes it a file:// URI.
func (v *validator) location(key string, loc *string) {
	path, isURI := strings.CutPrefix(*loc, "file://")
	switch {
	case *loc == "":
		v.say(key, "missing; write file:///dir")
	case !isURI && strings.Contains(*loc, "://"):
		v.check(false, key, *loc, "want the local file system, file:///dir")
	case !filepath.IsAbs(path) || filepath.Clean(path) == "/":
		v.check(false, key, *loc, "want an absolute directory, file:///dir")
	case slices.Contains(strings.Split(path, "/"), ".."):
		v.check(false, key, *loc, "must not have .. in it")
	default:
		*loc = "file://" + filepath.Clean(path)
	}
}

func (v *validator) executors(e *Executors) {
	v.check(e.Local >= 0 && e.Local <= 256, "executors.local", e.Local, "want 0 to 256 processes")
	v.check(e.Slots >= 1 && e.Slots <= 256, "executors.slots", e.Slots, "want 1 to 256 tasks at a time")
	v.check(e.Threads >= 1 && e.Threads <= 1024, "executors.threads", e.Threads, "want 1 to 1024 threads")
	v.check(e.MemoryLimit >= 128<<20, "executors.memory_limit", e.MemoryLimit, "want at least 128MiB")
}

func (v *validator) timeouts(t *Timeouts) {
	for key, d := range map[string]time.Duration{
		"timeouts.heartbeat": t.Heartbeat, "timeouts.executor_loss": t.ExecutorLoss, "timeouts.plugin_start": t.PluginStart, "timeouts.drain": t.Drain, "timeouts.root": t.Root,
	} {
		v.check(d > 0, key, d, "want more than 0")
	}
	v.check(t.ExecutorLoss >= 2*t.Heartbeat, "timeouts.executor_loss", t.ExecutorLoss,
		fmt.Sprintf("must be at least twice timeouts.heartbeat (%s), or one late report loses an executor", t.Heartbeat))
}

func (v *validator) limits(l *Limits) {
	v.check(l.TaskRetries >= 0, "limits.task_retries", l.TaskRetries, "want 0 or more")
	v.check(l.TaskLosses >= 1, "limits.task_losses", l.TaskLosses, "want 1 or more: the last of them fails the job")
	v.check(l.CommitRetries >= 0, "limits.commit_retries", l.CommitRetries, "want 0 or more")
	v.check(l.MaxResultBytes > 0, "limits.max_result_bytes", l.MaxResultBytes, "want more than 0")
	v.check(l.MaxEventLogBytes > 0, "limits.max_event_log_bytes", l.MaxEventLogBytes, "want more than 0")
	v.check(l.MaxSourceFiles > 0, "limits.max_source_files", l.MaxSourceFiles, "want more than 0")
	v.check(l.MaxInlineBytes > 0 && l.MaxInlineBytes <= MaxInline, "limits.max_inline_bytes", int64(l.MaxInlineBytes), fmt.Sprintf("want 1 to %d: it has to fit into one message", MaxInline))
	v.check(l.MaxTasks > 0 && l.MaxTasks <= 100_000, "limits.max_tasks", l.MaxTasks, "want 1 to 100000")
	v.check(l.MaxStages > 0 && l.MaxStages <= 100_000, "limits.max_stages", l.MaxStages, "want 1 to 100000")
	v.check(l.MaxJobTasks > 0 && l.MaxJobTasks <= 1_000_000, "limits.max_job_tasks", l.MaxJobTasks, "want 1 to 1000000")
	v.check(l.MaxPlanBytes > 0, "limits.max_plan_bytes", l.MaxPlanBytes, "want more than 0")
	v.check(l.MaxRunningJobs > 0, "limits.max_running_jobs", l.MaxRunningJobs, "want more than 0")
	v.check(l.MaxUserJobs > 0, "limits.max_user_jobs", l.MaxUserJobs, "want more than 0")
	v.check(l.MaxQueuedJobs >= 0, "limits.max_queued_jobs", l.MaxQueuedJobs, "want 0 or more")
	v.check(l.MaxCacheBytes > 0, "limits.max_cache_bytes", l.MaxCacheBytes, "want more than 0")
	v.check(l.Roots > 0, "limits.roots", l.Roots, "want more than 0")
}
