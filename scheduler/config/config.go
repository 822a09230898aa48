package config

import "time"

// Config is the whole configuration of a scheduler and of the processes it starts.
type Config struct {
	// Path is the file this was read from; "" if there was none.
	Path string `koanf:"-"`
	// DataDir holds the journal, sockets, scratch space and, by default, the catalog and the warehouse.
	DataDir string `koanf:"data_dir" kind:"path"`
	// Listen is the address for clients and executors. Port 0 picks a free one.
	Listen string `koanf:"listen"`
	// Cluster names the markers of this cluster in its tables: 1 to 40 of a-z, 0-9 and -. Never change it.
	Cluster string `koanf:"cluster"`

	TLS       TLS                `koanf:"tls"`
	Auth      Auth               `koanf:"auth"`
	Catalogs  map[string]Catalog `koanf:"catalogs"`
	Sources   Sources            `koanf:"sources"`
	Flight    Flight             `koanf:"flight"`
	Plugins   Plugins            `koanf:"plugins"`
	Executors Executors          `koanf:"executors"`
	Dispatch  Dispatch           `koanf:"dispatch"`
	Timeouts  Timeouts           `koanf:"timeouts"`
	Limits    Limits             `koanf:"limits"`
	Log       Log                `koanf:"log"`
	HTTP      HTTP               `koanf:"http"`

	Lineage       Lineage  `koanf:"lineage"`
	CommitReports Receiver `koanf:"commit_reports"`
	Audit         Audit    `koanf:"audit"`
}

// TLS are PEM files. ClientCA, if set, demands client certificates that it signed.
type TLS struct {
	Cert     string `koanf:"cert" kind:"path"`
	Key      string `koanf:"key" kind:"path"`
	ClientCA string `koanf:"client_ca" kind:"path"`
	CA       string `koanf:"ca" kind:"path"` // verifies executors on other machines, whose outputs this scheduler fetches
}

// Enabled says whether listeners speak TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

// Auth says who may connect. Without it only loopback is served.
type Auth struct {
	JoinToken  Secret      `koanf:"join_token"`  // executors show it
	JoinTokens []JoinToken `koanf:"join_tokens"` // or one of these
	Tokens     []Token     `koanf:"tokens"`      // clients show one
	// Certificates are clients that are known by the certificate that they show (tls.client_ca), without a token.
	Certificates []Certificate `koanf:"certificates"`
	// OIDC are issuers of tokens that clients may show instead.
	OIDC []OIDC `koanf:"oidc"`
}

// Token is one client's bearer token; jobs belong to its principal.
type Token struct {
	Principal string `koanf:"principal"`
	Token     Secret `koanf:"token"`
	// Operator may drain executors, which all share.
	Operator bool `koanf:"operator"`
}

// Certificate is whom a client's certificate is for: one of its names and the principal that it stands for.
type Certificate struct {
	// CN is the subject's common name.
	CN string `koanf:"cn"`
	// SAN is one of its subject alternative names: a URI (spiffe://…), a DNS name, an e-mail or an IP address, as it is written there.
	SAN       string `koanf:"san"`
	Principal string `koanf:"principal"`
	// Operator may drain executors, which all share.
	Operator bool `koanf:"operator"`
}

// Asked says whether clients have to show who they are.
func (a *Auth) Asked() bool { return len(a.Tokens) > 0 || len(a.Certificates) > 0 || len(a.OIDC) > 0 }

// Kinds of catalog.
const (
	CatalogSQL   = "sql"
	CatalogREST  = "rest"
	CatalogGlue  = "glue"
	CatalogDelta = "delta"
	CatalogSink  = "sink"
)

// Catalog is one entry of catalogs; its key is the name users type.
type Catalog struct {
	// Type is sql, rest for a server that speaks Iceberg's REST protocol, glue for AWS Glue's Data Catalog, delta for Delta tables in directories, or sink for
	// tables that are directories of a storage sink.
	Type string `koanf:"type"`

	// URI of a sql catalog: sqlite:///abs/file.db or postgresql://user@host:port/database; of a rest catalog: https://host/path, without /v1. It holds no password.
	URI string `koanf:"uri"`
	// Name is the catalog's name inside the database; the key by default.
	Name string `koanf:"name"`
	// Warehouse is where new tables go: file:///dir or s3://bucket/prefix; of a rest catalog: what its server calls it, which may be a name, or "".
	Warehouse string `koanf:"warehouse"`
	// DataPaths are further places, besides the warehouse and a table's own location, that a table's data files may go to: file:///dir or s3://bucket/prefix.
	DataPaths []string `koanf:"data_paths"`
	// AddFilesPaths are places outside of a table's own from which ADD FILES may make files the table's where they are: file:///dir. Whoever may change or
	// remove files there can break the table.
	AddFilesPaths []string `koanf:"add_files_paths"`
	// Properties are those of the REST or Glue catalog and of the stores that the tables are in, by PyIceberg's names: s3.endpoint.
	Properties map[string]string `koanf:"properties" kind:"flat"`
	// Secret holds the secrets by their name: password (sql), credential or token (rest), glue.access-key-id, s3.access-key-id and so on.
	Secret map[string]Secret `koanf:"secret" kind:"flat"`
	// Credentials say what executors get for one attempt, where the tables are in an object store.
	Credentials Credentials `koanf:"credentials"`
	// TLS says whom a rest catalog's server is known by, and who the scheduler is to it.
	TLS CatalogTLS `koanf:"tls"`

	// Sink of a sink catalog: the plugin's name; of a delta catalog it is delta.
	Sink string `koanf:"sink"`
	// Root of a sink or delta catalog: file:///dir, of a delta one also s3://bucket/prefix and the like; its tables are <root>/<namespace>/<table>.
	Root string `koanf:"root"`

	// Implied says that nobody wrote the entry: it is there because no catalog is configured.
	Implied bool `koanf:"-"`

	// Permissions, if there are any, are all that principals may do in the catalog. Without the key everybody may do everything.
	Permissions []Permission `koanf:"permissions"`

	// Maintenance is what the scheduler does by itself to the tables of a sql catalog.
	Maintenance Maintenance `koanf:"maintenance"`
}

// Modes of credentials.
const (
	CredentialsAuto      = "auto"
	CredentialsSTS       = "sts"
	CredentialsPresigned = "presigned"
	CredentialsVended    = "vended"
)

// Credentials say how an executor may write the files of one attempt: by a session of a role, narrowed to the attempt's prefix, or by requests that the scheduler has signed,
// with the operator's keys or with those that a rest catalog gives for a table.
type Credentials struct {
	// Mode is auto (sts with a role, else presigned), sts, presigned or vended.
	Mode string `koanf:"mode"`
	// RoleARN of the role that sessions are made of.
	RoleARN string `koanf:"role_arn"`
	// STSEndpoint makes the sessions: s3.endpoint by default, or AWS's own.
	STSEndpoint string `koanf:"sts_endpoint"`
	// ExternalID is what the role's trust policy may ask for.
	ExternalID string `koanf:"external_id"`
	// TrustEndpoint lets a rest catalog name a store (s3.endpoint) on another host than its own, in mode vended.
	TrustEndpoint bool `koanf:"trust_endpoint"`
	// Duration of a session or a signature: 15m to 1h.
	Duration time.Duration `koanf:"duration"`
}

// CatalogTLS are PEM files. Without CA the system's authorities are believed.
type CatalogTLS struct {
	CA   string `koanf:"ca" kind:"path"`
	Cert string `koanf:"cert" kind:"path"`
	Key  string `koanf:"key" kind:"path"`
}

// Plugins says where sink plugins are and what they may ask for.
type Plugins struct {
	// Dir holds signet-sink-* and plugins.lock; "" means the plugins directory beside the running binary.
	Dir string `koanf:"dir" kind:"path"`
	// AllowUnlocked starts plugins that plugins.lock does not name.
	AllowUnlocked bool `koanf:"allow_unlocked"`
	// Secrets: sink name → secret name → secret.
	Secrets map[string]map[string]Secret `koanf:"secrets"`
	// Dial: sink name → name → host:port.
	Dial map[string]map[string]string `koanf:"dial"`
	// Read: sink name → files and directories that its confined process may read besides the system's and its own.
	Read map[string][]string `koanf:"read"`
}

// Executors says which executors this scheduler starts by itself and what each gets.
type Executors struct {
	Local       int    `koanf:"local"`               // processes to start; 0: all come from elsewhere
	Slots       int    `koanf:"slots"`               // tasks at a time in each; 4 by default
	Threads     int    `koanf:"threads"`             // DuckDB threads of each task; all cores by default
	MemoryLimit Bytes  `koanf:"memory_limit"`        // for each process, over all its tasks; by default half of the machine, divided by local
	Scratch     string `koanf:"scratch" kind:"path"` // directory; <data_dir>/scratch by default
	Binary      string `koanf:"binary" kind:"path"`  // signet-executor beside the running binary by default

	TLSCert string `koanf:"tls_cert" kind:"path"` // PEM: what local executors show where tls.client_ca asks for a certificate
	TLSKey  string `koanf:"tls_key" kind:"path"`
}

// Timeouts are how long things may take.
type Timeouts struct {
	Heartbeat    time.Duration `koanf:"heartbeat"`     // executors report this often
	ExecutorLoss time.Duration `koanf:"executor_loss"` // an executor unheard of for this long is lost
	PluginStart  time.Duration `koanf:"plugin_start"`
	Drain        time.Duration `koanf:"drain"` // how long a shutdown waits for running work
	Root         time.Duration `koanf:"root"`  // a scheduler root may run this long; a commit, until its seal
}

// Limits are bounds on single jobs, and on how many there are.
type Limits struct {
	TaskRetries    int   `koanf:"task_retries"`     // further attempts of a task that failed
	TaskLosses     int   `koanf:"task_losses"`      // executors that one task may take along, or whose outputs it may lose: the last fails the job
	CommitRetries  int   `koanf:"commit_retries"`   // further attempts after definite conflicts
	MaxResultBytes Bytes `koanf:"max_result_bytes"` // of one SELECT
	MaxSourceFiles int   `koanf:"max_source_files"` // of one statement
	MaxInlineBytes Bytes `koanf:"max_inline_bytes"` // of a scheduler root's result, which travels inside the job's status
	MaxTasks       int   `koanf:"max_tasks"`        // of one stage
	MaxStages      int   `koanf:"max_stages"`       // of one job
	MaxJobTasks    int   `koanf:"max_job_tasks"`    // of one job
	MaxPlanBytes   Bytes `koanf:"max_plan_bytes"`   // of one job's tasks, as executors get them
	Roots          int   `koanf:"roots"`            // scheduler roots that run at one time, commits not among them

	MaxRunningJobs int   `koanf:"max_running_jobs"` // at one time; more wait
	MaxUserJobs    int   `koanf:"max_user_jobs"`    // of one principal that run at one time; more wait
	MaxQueuedJobs  int   `koanf:"max_queued_jobs"`  // that wait; more are refused
	MaxCacheBytes  Bytes `koanf:"max_cache_bytes"`  // of all cached tables of one principal
	// MaxEventLogBytes of one job's history; past it only plans and the end are written.
	MaxEventLogBytes Bytes `koanf:"max_event_log_bytes"`
}

// Log says what is logged; always to stderr.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // text or json
}
