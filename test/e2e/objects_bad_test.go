package e2e_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// Whatever is wrong with a store, each statement that needs it fails with what it did and why, and nothing of it stays, in the bucket or in the catalog; the others work.
func TestObjects_BadStore(t *testing.T) {
	t.Parallel()
	const (
		insert = "INSERT INTO s3.s.t VALUES (2)"
		create = "CREATE TABLE s3.s.made (i BIGINT)"
		filled = "CREATE TABLE s3.s.filled AS SELECT 1 AS i"
		read   = "SELECT sum(i) FROM s3.s.t"
		expire = "CALL s3.system.expire_snapshots(table => 's.t', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
		drop   = "DROP TABLE s3.s.t"
		works  = "" // the statement does
	)
	account := objectstest.Account{Key: storeKey, Secret: storeSecret, Region: "us-east-1"}
	c, store := onObjects(t, 1, harness.Options{Config: "limits: {task_retries: 0}\n"})
	store.Demand(account)
	client := c.Client()
	run := func(statement string) *schedulerv1.Job {
		r, err := client.Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: statement})
		require.NoError(t, err)
		j, err := client.Wait(harness.Context(t), r.GetJobId(), nil)
		require.NoError(t, err)
		return j
	}
	for _, st := range []string{"CREATE SCHEMA s3.s", "CREATE TABLE s3.s.t (i BIGINT)", "INSERT INTO s3.s.t VALUES (1)"} {
		require.Nil(t, run(st).GetError())
	}
	with := func(change func(*objectstest.Account)) func() {
		return func() { a := account; change(&a); store.Demand(a) }
	}
	deny := func(action string) func() { return with(func(a *objectstest.Account) { a.Deny = []string{action} }) }
	every := func(says string) map[string]string {
		return map[string]string{insert: says, create: says, filled: says, read: says, expire: says}
	}
	before := store.Keys()
	for name, tc := range map[string]struct {
		spoil func()
		says  map[string]string // by statement
	}{
		"may not get": {deny("s3:GetObject"), map[string]string{
			insert: "access denied", create: "access denied", filled: "access denied", read: "access denied", expire: "access denied",
		}},
		"may not put":    {deny("s3:PutObject"), map[string]string{insert: "upload s3://lake/wh/s/t/data/", create: "access denied", filled: "upload s3://lake/wh/s/filled", read: works}},
		"may not list":   {deny("s3:ListBucket"), map[string]string{create: "choose a location failed: the object store: access denied", filled: "list s3://lake/wh/s/filled/: access denied", read: works}},
		"may not remove": {deny("s3:DeleteObject"), map[string]string{read: works}},
		"wrong key":      {with(func(a *objectstest.Account) { a.Key = "another" }), every("s3.access-key-id is wrong")},
		"wrong secret":   {with(func(a *objectstest.Account) { a.Secret = "another" }), every("s3.secret-access-key is wrong")},
		"wrong region":   {with(func(a *objectstest.Account) { a.Region = "eu-west-1" }), every("set s3.region to eu-west-1")},
		"expired":        {with(func(a *objectstest.Account) { a.Expired = true }), every("credentials expired")},
		"no bucket": {func() {
			store.Fail(objectstest.Fault{Status: http.StatusNotFound, Code: "NoSuchBucket", Times: 1 << 30})
		}, every("no such bucket")},
	} {
		for statement, says := range tc.says {
			tc.spoil()
			j := run(statement)
			store.Heal()
			store.Demand(account)
			if says == works {
				require.Nil(t, j.GetError(), "%s: %s: %v", name, statement, j.GetError())
				continue
			}
			require.Contains(t, j.GetError().GetMessage()+" "+j.GetError().GetHint(), says, "%s: %s", name, statement)
		}
	}
	harness.Eventually(t, "what failed attempts wrote is removed", func() bool { return slices.Equal(before, store.Keys()) })
	require.Equal(t, "1", c.Value(read))
	require.Equal(t, [][]string{{"t"}}, c.SQL("SHOW TABLES FROM s3.s"))

	// What only removing is missing for, is made up for later; a catalog does not need the store to forget a table.
	deny("s3:DeleteObject")()
	c.SQL(insert)
	require.Contains(t, run(expire).GetError().GetMessage(), "the snapshots have expired; removing their files is tried again in the background: remove s3://lake/wh/s/t/metadata/")
	store.Fail(objectstest.Fault{Status: http.StatusNotFound, Code: "NoSuchBucket", Times: 1 << 30})
	require.Nil(t, run(drop).GetError())
}
