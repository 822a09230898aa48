package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "signet.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestExample_IsValidAndComplete(t *testing.T) {
	c, err := Load("testdata/example.yaml", nil, nil)
	require.NoError(t, err)
	here, err := filepath.Abs("testdata")
	require.NoError(t, err)

	assert.Equal(t, "production", c.Cluster)
	assert.Equal(t, "EXAMPLE_JOIN_TOKEN", c.Auth.JoinToken.Env())
	assert.Equal(t, filepath.Join(here, "secrets/etl-token"), c.Auth.Tokens[0].Token.File(), "relative to the file")
	assert.Equal(t, Catalog{
		Type: "sql", URI: "postgresql://signet@db.internal:5432/iceberg", Name: "prod", Warehouse: "file:///srv/shared",
		DataPaths: []string{"file:///fast/shared"}, AddFilesPaths: []string{"file:///srv/raw"},
		Secret:      map[string]Secret{"password": SecretFile(filepath.Join(here, "secrets/pg-password"))},
		Maintenance: Maintenance{ExpireSnapshots: Schedule{Every: time.Hour, AfterCommits: 100}},
		Permissions: []Permission{{Principals: []string{"etl", "team-*"}, Allow: []string{"read", "insert"}, Schemas: []string{"demo", "raw_*"}}},
		Credentials: Credentials{Mode: CredentialsAuto, Duration: time.Hour},
	}, c.Catalogs["shared"])
	assert.Equal(t, Catalog{Type: "sink", Sink: "minimal", Root: "file:///srv/files"}, c.Catalogs["files"])
	assert.Equal(t, []string{"/srv/raw", "/srv/uploads"}, c.Sources.Roots)
	assert.Equal(t, "metrics.internal:9090", c.Plugins.Dial["minimal"]["metrics"])
	assert.Equal(t, Bytes(4<<30), c.Executors.MemoryLimit)
	assert.Equal(t, 15*time.Second, c.Timeouts.ExecutorLoss)

	// The example shows every key there is.
	text, err := os.ReadFile("testdata/example.yaml")
	require.NoError(t, err)
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if key := f.Tag.Get("koanf"); key != "-" {
				assert.Contains(t, string(text), key+":", "%s.%s", typ.Name(), f.Name)
			}
			elem := f.Type
			for elem.Kind() == reflect.Slice || elem.Kind() == reflect.Map {
				elem = elem.Elem()
			}
			if elem.Kind() == reflect.Struct && elem != secretType {
				walk(elem)
			}
		}
	}
	walk(configType)
}

func TestEmbedded_IsValid(t *testing.T) {
	dir := t.TempDir()
	c := Embedded(dir)
	require.NoError(t, c.Validate())
	assert.Equal(t, Catalog{
		Type: "sql", URI: "sqlite://" + dir + "/catalog.db", Name: "lake", Warehouse: "file://" + dir + "/warehouse",
		Credentials: Credentials{Mode: CredentialsAuto, Duration: time.Hour},
	}, c.Catalogs["lake"])
	assert.Contains(t, c.OwnPaths(), dir)

	t.Setenv("XDG_DATA_HOME", "/some/where")
	assert.Equal(t, "/some/where/signet", Embedded("").DataDir)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "/home/me")
	assert.Equal(t, "/home/me/.local/share/signet", Embedded("").DataDir)
}

func TestLoad_NoFileIsTheEmbeddedDefault(t *testing.T) {
	dir := t.TempDir()
	c, err := Load("", []string{"SIGNET_DATA_DIR=" + dir, "PATH=/bin"}, nil)
	require.NoError(t, err)
	assert.Equal(t, Embedded(dir), c)
}

func TestLoad_LayersFileVariablesFlags(t *testing.T) {
	path := write(t, "executors: {local: 1, slots: 2, scratch: here}\ncluster: a\nauth: {join_token: {file: f}}\n")
	c, err := Load(path, []string{
		"SIGNET_EXECUTORS_LOCAL=3", "SIGNET_EXECUTORS_SLOTS=5", "SIGNET_CLUSTER=b", "SIGNET_SOURCES_ROOTS=/a, /b",
		"SIGNET_CATALOGS_MY_LAKE_TYPE=sql", "SIGNET_CATALOGS_MY_LAKE_URI=postgresql://u@h/d", "SIGNET_CATALOGS_MY_LAKE_WAREHOUSE=/w",
		"SIGNET_CATALOGS_MY_LAKE_SECRET_PASSWORD=hunter2", "SIGNET_AUTH_JOIN_TOKEN=hunter2", "SIGNET_FAILPOINTS=x", "SIGNET_LOG_LEVEL=debug",
		"SIGNET_CATALOGS_MY_LAKE_MAINTENANCE_EXPIRE_SNAPSHOTS_AFTER_COMMITS=7", "SIGNET_TIMEOUTS_EXECUTOR_LOSS=1m", "SIGNET_PLUGINS_SECRETS_S_K_FILE=/run/k",
	}, map[string]any{"executors.local": 7, "cluster": "c"})
	require.NoError(t, err)
	assert.Equal(t, 7, c.Executors.Local)
	assert.Equal(t, 5, c.Executors.Slots)
	assert.Equal(t, "c", c.Cluster)
	assert.Equal(t, []string{"/a", "/b"}, c.Sources.Roots)
	assert.Equal(t, filepath.Join(filepath.Dir(path), "here"), c.Executors.Scratch)
	assert.Equal(t, "file:///w", c.Catalogs["my_lake"].Warehouse)
	assert.Equal(t, SecretEnv("SIGNET_CATALOGS_MY_LAKE_SECRET_PASSWORD"), c.Catalogs["my_lake"].Secret["password"], "a reference, not the value")
	assert.Equal(t, SecretEnv("SIGNET_AUTH_JOIN_TOKEN"), c.Auth.JoinToken, "instead of the file, not beside it")
	assert.Equal(t, SecretFile("/run/k"), c.Plugins.Secrets["s"]["k"])
	assert.Equal(t, time.Minute, c.Timeouts.ExecutorLoss)
	assert.Equal(t, Schedule{AfterCommits: 7}, c.Catalogs["my_lake"].Maintenance.ExpireSnapshots)
	assert.Equal(t, "debug", c.Log.Level)
	assert.ElementsMatch(t, []string{"SIGNET_CATALOGS_MY_LAKE_SECRET_PASSWORD", "SIGNET_AUTH_JOIN_TOKEN"}, c.SecretEnv())
}

// Names with dots may be written as levels; variables of the environment hold neither dots nor dashes.
func TestLoad_PropertiesAndSecrets(t *testing.T) {
	path := write(t, `
catalogs:
  prod:
    type: rest
    uri: https://catalog.example.org/api
    warehouse: main
    properties: {scope: "PRINCIPAL_ROLE:ALL", s3.endpoint: "http://127.0.0.1:9000", s3: {path-style-access: true, region: eu-west-1}, header.X-Team: data}
    secret:
      credential: {file: cred}
      s3: {access-key-id: {env: KEY}}
      s3.secret-access-key: {env: SECRET}
  lake: {type: sql, uri: "sqlite:///x/c.db", warehouse: "s3a://bucket/w/", data_paths: ["s3://bucket/fast"]}
`)
	c, err := Load(path, []string{"SIGNET_CATALOGS_PROD_SECRET_S3_SESSION_TOKEN=hunter2", "SIGNET_CATALOGS_LAKE_PROPERTIES_S3_ROLE_ARN=arn:aws:iam::1:role/r"}, nil)
	require.NoError(t, err)
	prod := c.Catalogs["prod"]
	assert.Equal(t, map[string]string{
		"scope": "PRINCIPAL_ROLE:ALL", "s3.endpoint": "http://127.0.0.1:9000", "s3.path-style-access": "true", "s3.region": "eu-west-1", "header.X-Team": "data",
	}, prod.Properties)
	assert.Equal(t, map[string]Secret{
		"credential": SecretFile(filepath.Join(filepath.Dir(path), "cred")), "s3.access-key-id": SecretEnv("KEY"), "s3.secret-access-key": SecretEnv("SECRET"),
		"s3.session-token": SecretEnv("SIGNET_CATALOGS_PROD_SECRET_S3_SESSION_TOKEN"),
	}, prod.Secret)
	assert.Contains(t, c.SecretEnv(), "SIGNET_CATALOGS_PROD_SECRET_S3_SESSION_TOKEN")
	assert.Contains(t, c.OwnPaths(), filepath.Join(filepath.Dir(path), "cred"))
	assert.Equal(t, "s3://bucket/w", c.Catalogs["lake"].Warehouse)
	assert.Equal(t, []string{"s3://bucket/fast"}, c.Catalogs["lake"].DataPaths)
	assert.Equal(t, "arn:aws:iam::1:role/r", c.Catalogs["lake"].Properties["s3.role-arn"])
}

// TestLoad_Refuses: each message has the key, the value and the fix, and none the canary.
func TestLoad_Refuses(t *testing.T) {
	const lake = "catalogs: {lake: {type: sql, uri: 'sqlite:///x/c.db', warehouse: 'file:///x'"
	for text, want := range map[string][]string{
		"executor: {local: 1}":                            {"executor: unknown key", "did you mean executors?"},
		"executors: {locall: 1}":                          {"executors.locall", "did you mean local?"},
		"zzzzzz: 1":                                       {"zzzzzz", "known here: audit, auth, catalogs"},
		"executors: {local: two}":                         {"executors.local", `"two"`, "whole number"},
		"executors: {local: -1}":                          {"executors.local", `"-1"`, "want 0 to 256"},
		"executors: {slots: 99999999999}":                 {"executors.slots", "99999999999", "whole number"},
		"executors: {memory_limit: lots}":                 {"executors.memory_limit", `"lots"`, "4GiB"},
		"executors: {memory_limit: 1MiB}":                 {"executors.memory_limit", `"1MiB"`, "at least 128MiB"},
		"executors: 5":                                    {"executors", "keys below it"},
		"timeouts: {heartbeat: 5}":                        {"timeouts.heartbeat", `"5"`, "500ms"},
		"timeouts: {heartbeat: 10s}":                      {"timeouts.executor_loss", "twice timeouts.heartbeat"},
		"plugins: {allow_unlocked: maybe}":                {"plugins.allow_unlocked", `"maybe"`, "true or false"},
		"plugins: {read: {s: [lib]}}":                     {"plugins.read.s", `"lib"`, "absolute"},
		"plugins: {read: {s: [/]}}":                       {"plugins.read.s", `"/"`, "absolute path below /"},
		"data_dir: /d/e\nplugins: {read: {s: [/d]}}":      {"plugins.read.s", `"/d"`, "apart from /d/e"},
		"data_dir: /d/e\nplugins: {read: {s: [/d/e/f/]}}": {"plugins.read.s", `"/d/e/f/"`, "apart from /d/e"},
		"plugins: {dial: {s: {n: nowhere}}}":              {"plugins.dial.s.n", `"nowhere"`, "host:port"},
		"cluster: Big":                                    {"cluster", `"Big"`, "a-z"},
		"cluster: 42":                                     {"cluster", "quotes"},
		"listen: here":                                    {"listen", `"here"`, "host:port"},
		"listen: nonsense":                                {"listen", `"nonsense"`, "like 127.0.0.1:7070"},
		"listen: 0.0.0.0:7420":                            {"listen", `"0.0.0.0:7420"`, "tls.cert and tls.key, auth.join_token, auth.tokens", "127.0.0.1"},
		"listen: ':7420'":                                 {"listen", "others can reach"},
		"listen: 'example.org:1'":                         {"listen", "others can reach"},
		"listen: '127.0.0.1:99999'":                       {"listen", "host:port"},
		"tls: {cert: nowhere.pem}":                        {"tls: cert and key belong together", "tls.cert", "no such file"},
		"auth: {join_token: canary}":                      {"auth.join_token", "{file: PATH} or {env: NAME}"},
		"auth: {join_token: {literal: canary}}":           {"auth.join_token", "{file: PATH}"},
		"auth: {join_token: {file: canary, env: canary}}": {"auth.join_token", "{file: PATH}"},
		"auth: {tokens: canary}":                          {"auth.tokens", "want a list"},
		"auth: {tokens: [canary]}":                        {"auth.tokens[0]"},
		"auth: {tokens: [{principal: a}]}":                {"auth.tokens[0].token", "missing"},
		"auth: {tokens: [{token: {env: A}}]}":             {"auth.tokens[0].principal"},
		"auth: {tokens: [{princpal: a}]}":                 {"auth.tokens[0].princpal", "did you mean principal?"},
		"auth: {tokens: [{principal: a, token: {env: A}}, {principal: a, token: {env: A}}]}": {"auth.tokens[1].principal", "twice"},
		"catalogs: {'a.b': {type: sql}}":                                                                                {`"a.b"`, "letters"},
		"catalogs: {'': {type: sql}}":                                                                                   {"catalogs", "letters"},
		"catalogs: {lake: {type: unity}}":                                                                               {"catalogs.lake.type", `"unity"`, "glue, rest, sink, sql"},
		"catalogs: {d: {type: delta}}":                                                                                  {"catalogs.d.root", "missing"},
		"catalogs: {d: {type: delta, root: 'file:///t', sink: minimal}}":                                                {"catalogs.d.sink", "not for type delta"},
		"catalogs: {d: {type: delta, root: 'file:///t', warehouse: 'file:///w'}}":                                       {"catalogs.d.warehouse", "not for type delta"},
		"catalogs: {d: {type: delta, root: 'ftp://h/t'}}":                                                               {"catalogs.d.root", "s3://bucket/prefix"},
		"catalogs: {d: {type: delta, root: 'file:///t', maintenance: {expire_snapshots: {every: 1h}}}}":                 {"catalogs.d.maintenance.expire_snapshots", "not for type delta"},
		"catalogs: {lake: {type: hive, uri: 'thrift://h:9083'}}":                                                        {"catalogs.lake.type", "Hive metastores are not served"},
		"catalogs: {g: {type: glue, warehouse: 's3://lake/w'}}":                                                         {"catalogs.g.properties.glue.region", "missing"},
		"catalogs: {g: {type: glue, warehouse: 's3://lake/w', properties: {glue.region: r, token: t}}}":                 {"catalogs.g.properties.token", "under secret"},
		"catalogs: {g: {type: glue, warehouse: 's3://lake/w', properties: {glue.region: r, scope: t}}}":                 {"catalogs.g.properties.scope", "unknown property"},
		"catalogs: {g: {type: glue, warehouse: 's3://lake/w', uri: 'http://h'}}":                                        {"catalogs.g.uri", "is not for type glue"},
		"catalogs: {g: {type: glue, warehouse: 's3://lake/w', secret: {glue.access-key-id: {env: A}}}}":                 {"catalogs.g.secret", "belong together"},
		"catalogs: {g: {type: glue, warehouse: 's3://lake/w', properties: {glue.max-retries: many}}}":                   {"catalogs.g.properties.glue.max-retries", "want a number"},
		"catalogs: {g: {type: sql, uri: 'sqlite:///c.db', warehouse: /w, properties: {glue.region: r}}}":                {"catalogs.g.properties.glue.region", "unknown property"},
		"catalogs: {lake: {type: sqll}}":                                                                                {"did you mean sql?"},
		"catalogs: {lake: {type: sql}}":                                                                                 {"catalogs.lake.uri", "catalogs.lake.warehouse: missing"},
		"catalogs: {lake: {type: sql, uri: 'sqlite://c.db', warehouse: /w}}":                                            {"catalogs.lake.uri", "absolute"},
		"catalogs: {lake: {type: sql, uri: 'mysql://u:canary@h/d', warehouse: /w}}":                                     {"catalogs.lake.uri", `"mysql"`, "postgresql://"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u:canary@h/d', warehouse: /w}}":                                {"catalogs.lake.uri", "secret: {password:"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://h/d?password=canary', warehouse: /w}}":                         {"catalogs.lake.uri", "secret: {password:"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u:canary@h:x%/d', warehouse: /w}}":                             {"catalogs.lake.uri", "not an address"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: /w, secret: canary}}":                       {"catalogs.lake.secret"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: /w, secret: {passwd: {env: A}}}}":           {"catalogs.lake.secret", "did you mean password?"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 's3://b/w'}}":                               {"catalogs.lake.warehouse", "s3://b/w", "3 to 63"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 'hdfs://bucket/w'}}":                        {"catalogs.lake.warehouse", "hdfs://bucket/w", "s3://bucket/prefix"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 'gs://B/w'}}":                               {"catalogs.lake.warehouse", "gs://B/w", "3 to 222"},
		lake + ", properties: {gcs.jsonkey: canary}}}":                                                                  {"catalogs.lake.properties.gcs.jsonkey", "write it under secret"},
		lake + ", properties: {gcs.oauth2.token-expires-at: soon}}}":                                                    {"catalogs.lake.properties.gcs.oauth2.token-expires-at", "milliseconds"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 's3://bucket/a/../b'}}":                     {"catalogs.lake.warehouse", "no . and .."},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 's3://bucket/a//b'}}":                       {"catalogs.lake.warehouse", "no empty segment"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 's3://u:canary@bucket/a'}}":                 {"catalogs.lake.warehouse", "keys under secret"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 'file:///'}}":                               {"catalogs.lake.warehouse"},
		"catalogs: {lake: {type: sql, uri: 'postgresql://u@h/d', warehouse: 'file:///a/../b'}}":                         {"catalogs.lake.warehouse", ".."},
		lake + ", secret: {password: {env: A}}}}":                                                                       {"catalogs.lake.secret", "SQLite has no password"},
		lake + ", root: 'file:///r'}}":                                                                                  {"catalogs.lake.root", "not for type sql"},
		lake + ", warehous: x}}":                                                                                        {"catalogs.lake.warehous", "did you mean warehouse?"},
		lake + ", properties: {s3.endpont: x}}}":                                                                        {"catalogs.lake.properties.s3.endpont", "did you mean s3.endpoint?"},
		lake + ", properties: {s3: {endpoint: here}}}}":                                                                 {"catalogs.lake.properties.s3.endpoint", "want http://"},
		lake + ", properties: {s3.endpoint: 'http://u:canary@h'}}}":                                                     {"catalogs.lake.properties.s3.endpoint", "must not hold a user"},
		lake + ", properties: {s3.path-style-access: maybe}}}":                                                          {"catalogs.lake.properties.s3.path-style-access", "true or false"},
		lake + ", properties: {s3.secret-access-key: canary}}}":                                                         {"catalogs.lake.properties.s3.secret-access-key", "write it under secret"},
		lake + ", properties: {s3.region: a, s3: {region: b}}}}":                                                        {"catalogs.lake.properties.s3.region", "given twice"},
		lake + ", properties: {s3.region: [a]}}}":                                                                       {"catalogs.lake.properties.s3.region", "not text"},
		lake + ", properties: canary}}":                                                                                 {"catalogs.lake.properties", "want keys below it"},
		lake + ", properties: {scope: a}}}":                                                                             {"catalogs.lake.properties.scope", "unknown property"},
		lake + ", secret: {s3.access-key-id: canary}}}":                                                                 {"catalogs.lake.secret.s3.access-key-id", "{file: PATH}"},
		lake + ", secret: {s3: {access-key-id: {literal: canary}}}}}":                                                   {"catalogs.lake.secret.s3.access-key-id.literal", "{file: PATH}"},
		lake + ", secret: {s3.access-key-id: {env: A}}}}":                                                               {"catalogs.lake.secret", "s3.access-key-id and s3.secret-access-key belong together"},
		lake + ", secret: {token: {env: A}}}}":                                                                          {"catalogs.lake.secret.token", "unknown secret"},
		lake + ", tls: {ca: x.pem}}}":                                                                                   {"catalogs.lake.tls.ca", "not for type sql"},
		"catalogs: {r: {type: rest}}":                                                                                   {"catalogs.r.uri", "in front of /v1"},
		"catalogs: {r: {type: rest, uri: 'https://u:canary@h'}}":                                                        {"catalogs.r.uri", "secrets are written under secret"},
		"catalogs: {r: {type: rest, uri: 'https://h', secret: {credential: {env: A}, token: {env: B}}}}":                {"catalogs.r.secret", "one of them"},
		"catalogs: {r: {type: rest, uri: 'https://h', properties: {header.Authorization: canary}}}":                     {"catalogs.r.properties.header.Authorization", "under secret"},
		"catalogs: {r: {type: rest, uri: 'https://h', properties: {'header.A b': c}}}":                                  {"catalogs.r.properties.header.A b", "not the name"},
		"catalogs: {r: {type: rest, uri: 'http://h', tls: {ca: nowhere.pem}}}":                                          {"catalogs.r.tls", "https://", "no such file"},
		"catalogs: {r: {type: rest, uri: 'https://h', name: n}}":                                                        {"catalogs.r.name", "not for type rest"},
		"catalogs: {f: {type: sink, sink: m, root: /r, properties: {s3.region: a}}}":                                    {"catalogs.f.properties", "not for type sink"},
		lake + ", credentials: {mode: stss}}}":                                                                          {"catalogs.lake.credentials.mode", "did you mean sts?"},
		lake + ", credentials: {mode: sts}}}":                                                                           {"catalogs.lake.credentials.role_arn", "missing"},
		lake + ", credentials: {mode: presigned, role_arn: 'arn:aws:iam::1:role/r'}}}":                                  {"catalogs.lake.credentials.role_arn", "not for mode presigned"},
		lake + ", credentials: {mode: vended}}}":                                                                        {"catalogs.lake.credentials.mode", `"vended"`},
		"catalogs: {r: {type: rest, uri: 'https://h', credentials: {mode: vended, role_arn: 'arn:aws:iam::1:role/r'}}}": {"catalogs.r.credentials.role_arn", "not for mode vended"},
		"catalogs: {r: {type: rest, uri: 'https://h', credentials: {trust_endpoint: true}}}":                            {"catalogs.r.credentials.trust_endpoint", "for mode vended"},
		lake + ", credentials: {role_arn: r}}}":                                                                         {"catalogs.lake.credentials.role_arn", "arn:aws:iam::ACCOUNT:role/NAME"},
		lake + ", credentials: {sts_endpoint: 'http://h'}}}":                                                            {"catalogs.lake.credentials.role_arn", "missing"},
		lake + ", credentials: {duration: 5m}}}":                                                                        {"catalogs.lake.credentials.duration", `"5m0s"`, "15m0s to 1h0m0s"},
		"catalogs: {f: {type: sink, sink: m, root: /r, credentials: {mode: auto}}}":                                     {"catalogs.f.credentials", "not for type sink"},
		"catalogs: {f: {type: sink}}":                                                                                   {"catalogs.f.sink", "catalogs.f.root: missing"},
		"catalogs: {f: {type: sink, sink: m, root: /r, uri: 'sqlite:///x'}}":                                            {"catalogs.f.uri", "not for type sink"},
		lake + ", maintenance: {expire_snapshot: {every: 1h}}}}":                                                        {"catalogs.lake.maintenance.expire_snapshot: unknown key", "did you mean expire_snapshots?"},
		lake + ", maintenance: {expire_snapshots: {evry: 1h}}}}":                                                        {"catalogs.lake.maintenance.expire_snapshots.evry", "did you mean every?"},
		lake + ", maintenance: {expire_snapshots: {every: 10ms}}}}":                                                     {"catalogs.lake.maintenance.expire_snapshots.every", `"10ms"`, "want 1s to 8760h"},
		lake + ", maintenance: {expire_snapshots: {every: -1h}}}}":                                                      {"catalogs.lake.maintenance.expire_snapshots.every", `"-1h`},
		lake + ", maintenance: {expire_snapshots: {every: 10000h}}}}":                                                   {"catalogs.lake.maintenance.expire_snapshots.every", `"10000h`},
		lake + ", maintenance: {expire_snapshots: {every: hourly}}}}":                                                   {"catalogs.lake.maintenance.expire_snapshots.every", `"hourly"`, "not a duration"},
		lake + ", maintenance: {expire_snapshots: {after_commits: -1}}}}":                                               {"catalogs.lake.maintenance.expire_snapshots.after_commits", `"-1"`, "want 1 to 10000"},
		lake + ", maintenance: {expire_snapshots: {after_commits: 10001}}}}":                                            {"catalogs.lake.maintenance.expire_snapshots.after_commits", `"10001"`},
		lake + ", maintenance: {expire_snapshots: often}}}":                                                             {"catalogs.lake.maintenance.expire_snapshots", "keys below it"},
		"catalogs: {f: {type: sink, sink: m, root: /r, maintenance: {expire_snapshots: {every: 1h}}}}":                  {"catalogs.f.maintenance.expire_snapshots", "not for type sink"},
		"auth: {tokens: [{principal: signet/maintenance, token: {env: A}}]}":                                            {"auth.tokens[0].principal", "signet/maintenance", "the scheduler's own"},
		"log: {level: inf}":          {"log.level", `"inf"`, "did you mean info?"},
		"limits: {task_retries: -1}": {"limits.task_retries"},
		"sources: {roots: /a}":       {"sources.roots", "want a list"},
		"a: [":                       {"no valid YAML"},
		"cluster: a\ncluster: b":     {"no valid YAML", "already defined"},
		"- a":                        {"no valid YAML"},
	} {
		t.Run(text, func(t *testing.T) {
			path := write(t, text)
			_, err := Load(path, nil, nil)
			require.Error(t, err)
			for _, w := range want {
				assert.Contains(t, err.Error(), w)
			}
			assert.NotContains(t, strings.ReplaceAll(err.Error(), path, "signet.yaml"), "canary")
			assert.Contains(t, err.Error(), "signet.yaml")
		})
	}
}

func TestLoad_TellsEveryProblem(t *testing.T) {
	_, err := Load(write(t, "cluster: UP\nlog: {level: loud, format: xml}\n"), nil, nil)
	require.Error(t, err)
	for _, key := range []string{"cluster:", "log.level:", "log.format:"} {
		assert.Contains(t, err.Error(), key)
	}
}

func TestLoad_RefusesVariablesAndFlags(t *testing.T) {
	_, err := Load("", []string{"SIGNET_DATADIR=/x"}, nil)
	require.ErrorContains(t, err, "SIGNET_DATADIR: unknown variable; did you mean SIGNET_DATA_DIR?")
	_, err = Load("", []string{
		"SIGNET_FAILPOINTS=x", "SIGNET_SCHEDULER=x", "SIGNET_TLS_CA=x", "SIGNET_TOKEN_FILE=x", "SIGNET_JOIN_TOKEN=x", "SIGNET_EXECUTOR_SLOTS=x", "SIGNET_EXECUTOR_MEMORY=x",
		"SIGNET_BIN=x", "SIGNET_CONFIG=x", "SIGNET_SINK_PLUGIN=x", "SIGNET_CATALOG_PASSWORD=x", "SIGNET_=x", "SIGNET=x",
	}, nil)
	require.NoError(t, err, "other parts' variables")
	_, err = Load("", []string{"SIGNET_EXECUTORS_LOCAL=many"}, nil)
	require.ErrorContains(t, err, `executors.local: "many" is not a whole number (from SIGNET_EXECUTORS_LOCAL)`)
	_, err = Load("", nil, map[string]any{"executors.locl": 1})
	require.ErrorContains(t, err, "executors.locl: unknown key; did you mean local?")
	_, err = Load("", nil, map[string]any{"executors.local": "x"})
	require.ErrorContains(t, err, "(from flag)")
}

func TestLoad_MissingAndOddFiles(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(t.TempDir(), nil, nil)
	require.Error(t, err)
	_, err = Load(write(t, strings.Repeat("#", maxFile+1)), nil, nil)
	require.ErrorContains(t, err, "is it the right file?")
	c, err := Load(write(t, ""), nil, nil)
	require.NoError(t, err, "an empty file changes nothing")
	assert.Contains(t, c.Catalogs, "lake")
	assert.Contains(t, c.OwnPaths(), c.Path)
}

func TestListen_OtherAddressesWithTLSAndTokens(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"cert.pem", "key.pem"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	path := filepath.Join(dir, "signet.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
listen: "[::]:7420"
tls: {cert: cert.pem, key: key.pem}
auth: {join_token: {env: J}, tokens: [{principal: p, token: {env: T}}]}
`), 0o600))
	c, err := Load(path, nil, nil)
	require.NoError(t, err)
	assert.True(t, c.TLS.Enabled())
	assert.Contains(t, c.OwnPaths(), filepath.Join(dir, "key.pem"))
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true, "LOCALHOST": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example.org": false, "example.org": false, "2130706433": false,
	} {
		assert.Equal(t, want, IsLoopback(host), host)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "17": 17, "4GiB": 4 << 30, "4 gib": 4 << 30, "1.5KiB": 1536, "10MB": 1e7, "3B": 3, "1TiB": 1 << 40} {
		got, err := ParseBytes(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "GiB", "-1", "x", "1PiB", "NaN", "1e300", "Inf"} {
		_, err := ParseBytes(text)
		require.Error(t, err, text)
	}
	assert.Equal(t, "4GiB", Bytes(4<<30).String())
	assert.Equal(t, "1000B", Bytes(1000).String())
	assert.Equal(t, "0B", Bytes(0).String())
}

func TestValidate_Certificates(t *testing.T) {
	dir := t.TempDir()
	pem := filepath.Join(dir, "any.pem")
	require.NoError(t, os.WriteFile(pem, []byte("x"), 0o600))
	tls := "tls: {cert: " + pem + ", key: " + pem + ", client_ca: " + pem + "}\n"
	apart := "executors: {local: 0}\n"
	for name, tc := range map[string]struct{ yaml, want string }{
		"as it should be":         {tls + apart + "auth: {certificates: [{cn: a, principal: p}, {san: 'spiffe://x/a', principal: p, operator: true}]}\n", ""},
		"executors of its own":    {tls + "executors: {local: 1, tls_cert: " + pem + ", tls_key: " + pem + "}\n", ""},
		"nobody shows one":        {"auth: {certificates: [{cn: a, principal: p}]}\n", "needs tls.client_ca"},
		"neither name":            {tls + apart + "auth: {certificates: [{principal: p}]}\n", "want one of cn"},
		"both names":              {tls + apart + "auth: {certificates: [{cn: a, san: b, principal: p}]}\n", "want one of cn"},
		"twice":                   {tls + apart + "auth: {certificates: [{cn: a, principal: p}, {cn: a, principal: q}]}\n", "is there twice"},
		"the scheduler's own":     {tls + apart + "auth: {certificates: [{cn: a, principal: signet/maintenance}]}\n", "the scheduler's own"},
		"no principal":            {tls + apart + "auth: {certificates: [{cn: a}]}\n", "auth.certificates[0].principal"},
		"executors have none":     {tls, "executors.tls_cert"},
		"half a pair":             {tls + "executors: {local: 1, tls_cert: " + pem + "}\n", "belong together"},
		"shown to nobody":         {"executors: {tls_cert: " + pem + ", tls_key: " + pem + "}\n", "is for a scheduler that asks"},
		"no file":                 {tls + "executors: {tls_cert: /nonexistent, tls_key: " + pem + "}\n", "no such file"},
		"open with certificates":  {tls + apart + "listen: 0.0.0.0:1\nauth: {join_token: {env: J}, certificates: [{cn: a, principal: p}]}\n", ""},
		"open, nobody identified": {tls + apart + "listen: 0.0.0.0:1\nauth: {join_token: {env: J}}\n", "auth.tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, "data_dir: "+dir+"\n"+tc.yaml), nil, nil)
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}
