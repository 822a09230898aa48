package checkup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/checkup"
	"github.com/signet-io/signet/scheduler/config"
)

const role = "arn:aws:iam::123456789012:role/executor"

// account of the store of these tests, and what the scheduler is told of it.
func account() objectstest.Account {
	return objectstest.Account{Key: "AKIATEST", Secret: "canary-secret", Region: "us-east-1", Role: role}
}

func onStore(t *testing.T, url string) *config.Config {
	t.Helper()
	secret := func(text string) config.Secret {
		file := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return config.SecretFile(file)
	}
	c := config.Embedded(t.TempDir())
	c.Catalogs = map[string]config.Catalog{"lake": {
		Type: config.CatalogSQL, Name: "lake", URI: "sqlite://" + filepath.Join(t.TempDir(), "c.db"), Warehouse: "s3://" + objectstest.Bucket + "/wh",
		Properties:  map[string]string{"s3.endpoint": url},
		Secret:      map[string]config.Secret{"s3.access-key-id": secret("AKIATEST"), "s3.secret-access-key": secret("canary-secret")},
		Credentials: config.Credentials{Mode: config.CredentialsAuto, RoleARN: role, Duration: time.Hour},
	}}
	return c
}

// change makes a setting of the catalog another.
func change(c *config.Config, f func(*config.Catalog)) {
	lake := c.Catalogs["lake"]
	f(&lake)
	c.Catalogs["lake"] = lake
}

// check runs one, and gives the steps that did not go well, and all of them as text.
func check(t *testing.T, c *config.Config) (bad []checkup.Step, all string) {
	t.Helper()
	require.NoError(t, scheduler.Check(t.Context(), c, "", time.Minute, func(s checkup.Step) {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		require.NotContains(t, string(b), "canary")
		require.NotContains(t, string(b), "X-Amz-Signature")
		all += string(s.State) + " " + s.Name + "\n"
		if s.State == checkup.Failed || s.State == checkup.Warning {
			bad = append(bad, s)
			require.NotEmpty(t, s.Detail)
			require.NotEmpty(t, s.Fix, s)
		}
	}))
	return bad, all
}

func TestCheck_EverythingOfAStore(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	store.Demand(account())
	bad, all := check(t, onStore(t, store.URL))
	require.Empty(t, bad)
	require.Equal(t, `ok open
ok list namespaces
ok open storage
ok reach the bucket
ok clock
ok may remove
ok write
ok write only what is not there
ok read
ok list
ok read by a signed request
ok refuse to read without a signature
ok write by a signed request
ok a signed request replaces nothing
ok refuse to write without a signature
ok a signature is for one object
ok upload in parts by signed requests
ok assume the role
ok a session writes its prefix
ok a session reaches nothing else
ok remove
ok permissions
`, all)
	require.Empty(t, store.Keys())
}

// Whatever is wrong, the step that fails names it, where it is and what to do, and nothing stays in the bucket.
func TestCheck_WhatIsWrong(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1" // listens there
	type row struct {
		store  func(*objectstest.Account)
		config func(*config.Catalog)
		ahead  time.Duration
		step   string // the only one that fails
		says   string
		fix    string
	}
	deny := func(action string) func(*objectstest.Account) {
		return func(a *objectstest.Account) { a.Deny = []string{action} }
	}
	for name, tc := range map[string]row{
		"wrong endpoint": {
			config: func(c *config.Catalog) { c.Properties["s3.endpoint"] = "http://" + nobody },
			step:   "reach the bucket", says: "nothing answers there", fix: "catalogs.lake.properties.s3.endpoint",
		},
		"wrong region": {
			store: func(a *objectstest.Account) { a.Region = "eu-west-1" },
			step:  "reach the bucket", says: "set s3.region to eu-west-1", fix: "catalogs.lake.properties.s3.region",
		},
		"wrong key": {
			store: func(a *objectstest.Account) { a.Key = "another" },
			step:  "reach the bucket", says: "InvalidAccessKeyId", fix: "catalogs.lake.secret.s3.access-key-id",
		},
		"wrong secret": {
			store: func(a *objectstest.Account) { a.Secret = "another" },
			step:  "reach the bucket", says: "SignatureDoesNotMatch", fix: "catalogs.lake.secret.s3.secret-access-key",
		},
		"expired token": {
			store: func(a *objectstest.Account) { a.Expired = true },
			step:  "reach the bucket", says: "credentials expired", fix: "catalogs.lake.secret.s3.session-token",
		},
		"clock is slow": {ahead: 20 * time.Minute, step: "clock", says: "20m0s ahead", fix: "clock"},
		"clock is fast": {ahead: -20 * time.Minute, step: "clock", says: "20m0s behind", fix: "clock"},
		"missing bucket": {
			config: func(c *config.Catalog) { c.Warehouse = "s3://another/wh" },
			step:   "reach the bucket", says: "no such bucket", fix: "catalogs.lake.warehouse",
		},
		"may not list":   {store: deny("s3:ListBucket"), step: "list", says: "access denied", fix: "s3:ListBucket"},
		"may not write":  {store: deny("s3:PutObject"), step: "write", says: "access denied", fix: "s3:PutObject"},
		"may not remove": {store: deny("s3:DeleteObject"), step: "may remove", says: "access denied", fix: "s3:DeleteObject"},
		"may not read":   {store: deny("s3:GetObject"), step: "read", says: "access denied", fix: "s3:GetObject"},
		"may not assume": {
			store: func(a *objectstest.Account) { a.Role = "" },
			step:  "assume the role", says: "trust policy", fix: "catalogs.lake.credentials.role_arn",
		},
		"policies are not heeded": {
			store: func(a *objectstest.Account) { a.Loose = true },
			step:  "a session reaches nothing else", says: "write, read, list, remove outside of its prefix", fix: "catalogs.lake.credentials.mode",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, a := objectstest.Start(t), account()
			if tc.store != nil {
				tc.store(&a)
			}
			store.Demand(a)
			store.Ahead(tc.ahead)
			c := onStore(t, store.URL)
			if tc.config != nil {
				change(c, tc.config)
			}
			bad, all := check(t, c)
			require.Len(t, bad, 1, all)
			require.Equal(t, tc.step, bad[0].Name)
			require.Contains(t, bad[0].Detail, tc.says)
			require.Contains(t, bad[0].Fix, tc.fix)
			require.Contains(t, bad[0].Where, "bucket ")
			require.Contains(t, bad[0].Where, c.Catalogs["lake"].Properties["s3.endpoint"]+", region us-east-1")
			require.Empty(t, store.Keys())
			want := checkup.Failed
			if a.Loose {
				want = checkup.Warning
			}
			require.Equal(t, want, bad[0].State)
		})
	}
}

// A store that looks at no signature is told from one that does, and a fault of any one request ends in a step that failed, or in none; nothing stays.
func TestCheck_StoreWithoutSignaturesAndFaults(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	c := onStore(t, store.URL)
	change(c, func(c *config.Catalog) { c.Credentials.RoleARN = "" })
	bad, all := check(t, c)
	var names []string
	for _, s := range bad {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"refuse to read without a signature", "refuse to write without a signature", "a signature is for one object"}, names, all)
	require.Empty(t, store.Keys())

	store.Demand(account())
	store.Log()
	_, all = check(t, c)
	require.NotContains(t, all, "failed")
	requests := len(store.Log())
	for n := range requests {
		store.Fail(objectstest.Fault{Skip: n, Status: http.StatusForbidden, Code: "AccessDenied"})
		_, all = check(t, c)
		store.Log()
		require.Contains(t, all, "remove\n", n)
		if left := store.Keys(); len(left) > 0 { // where it is the removal that was refused
			require.Contains(t, all, "failed remove", "request %d", n)
			for _, k := range left {
				store.Remove(k)
			}
		}
	}
}

func TestCheck_CutOffLeavesNothing(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	store.Demand(account())
	c := onStore(t, store.URL)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := scheduler.Check(ctx, c, "", time.Minute, func(s checkup.Step) {
		if s.Name == "a session writes its prefix" {
			cancel(errors.New("cut off"))
		}
	})
	require.Error(t, err)
	require.Empty(t, store.Keys())
}

// What each principal may do is told, and who nobody can be.
func TestCheck_Permissions(t *testing.T) {
	c := config.Embedded(t.TempDir())
	c.Auth.Tokens = []config.Token{{Principal: "etl"}, {Principal: "bi"}}
	dir := t.TempDir()
	c.Catalogs = map[string]config.Catalog{"lake": {
		Type: config.CatalogSQL, Name: "lake", URI: "sqlite://" + filepath.Join(dir, "c.db"), Warehouse: "file://" + dir + "/wh",
		Permissions: []config.Permission{{Principals: []string{"et*"}, Allow: []string{"read", "insert"}, Schemas: []string{"raw_*"}}, {Principals: []string{"ops"}, Allow: []string{"all"}}},
	}}
	var lines []string
	require.NoError(t, scheduler.Check(t.Context(), c, "", time.Minute, func(s checkup.Step) {
		if strings.HasPrefix(s.Name, "permissions") {
			lines = append(lines, fmt.Sprintf("%s %s: %s", s.State, s.Name, s.Detail))
		}
	}))
	require.Equal(t, []string{
		"ok permissions of bi: nothing",
		"ok permissions of etl: read, insert in raw_*",
		"warning permissions of ops: all in every schema; but nobody is ops here",
	}, lines)
}
