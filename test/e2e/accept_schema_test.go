package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// INSERT BY NAME changes a table that allows it, and no other.
func TestAcceptAnySchema(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.a; CREATE TABLE lake.a.t (id INTEGER, s STRUCT(x INTEGER)) WITH ('signet.accept-any-schema' = 'true'); CREATE TABLE lake.a.strict (id INTEGER)")
	c.SQL("INSERT INTO lake.a.t VALUES (1, {'x': 1})")

	before := c.Table("a", "t").MetadataLocation
	rows := c.SQL("EXPLAIN INSERT INTO lake.a.t BY NAME SELECT 2 AS id, 'b' AS name")
	require.Contains(t, rows[0][0], "changes the table before: adds column name VARCHAR")
	c.SQL("VALIDATE INSERT INTO lake.a.t BY NAME SELECT 2 AS id, 'b' AS name")
	require.Equal(t, before, c.Table("a", "t").MetadataLocation, "a dry run changes nothing")

	c.SQL("INSERT INTO lake.a.t BY NAME SELECT 3000000000 AS id, 'b' AS name, {'x': 2, 'y': [1.5]} AS s")
	c.SQL("INSERT INTO lake.a.t BY NAME SELECT 3 AS ID")
	require.Equal(t, [][]string{{"1", ""}, {"3", ""}, {"3000000000", "b"}}, c.SQL("SELECT id, name FROM lake.a.t ORDER BY id"))
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.a.t WHERE s.y IS NOT NULL"))
	fields := c.Table("a", "t").Metadata.CurrentSchema().Fields()
	require.Len(t, fields, 3)
	require.Equal(t, "long", fields[0].Type.String())
	require.False(t, fields[2].Required)

	strict := c.Table("a", "strict").MetadataLocation
	c.Fail(1, "INSERT INTO lake.a.strict BY NAME SELECT 1 AS id, 2 AS more", "column more is not in lake.a.strict", "'signet.accept-any-schema' = 'true'")
	c.Fail(1, "INSERT INTO lake.a.strict SELECT 1 AS id, 2 AS more", "nothing takes more")
	c.Fail(1, "INSERT INTO lake.a.t BY NAME SELECT 1 AS id, INTERVAL 1 DAY AS i", "no table stores the type INTERVAL")
	c.Fail(1, "INSERT INTO lake.a.t BY NAME SELECT 'x' || 1 AS id", "column id of lake.a.t is BIGINT and the query gives VARCHAR")
	require.Equal(t, strict, c.Table("a", "strict").MetadataLocation)
	c.NoOrphans("a", "t")
}

// Statements that bring the same column at the same time add it once, and all rows land.
func TestAcceptAnySchema_Concurrently(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.a; CREATE TABLE lake.a.t (id BIGINT) WITH ('signet.accept-any-schema' = 'true')")
	const n = 6
	done := make(chan error, n)
	for i := range n {
		go func() {
			cl, err := client.Dial(c.Address)
			if err == nil {
				defer cl.Close()
				_, err = cl.Exec(harness.Context(t), fmt.Sprintf("INSERT INTO lake.a.t BY NAME SELECT %d AS id, 'v' AS fresh", i))
			}
			done <- err
		}()
	}
	for range n {
		require.NoError(t, <-done)
	}
	require.Equal(t, fmt.Sprint(n), c.Value("SELECT count(fresh) FROM lake.a.t"))
	require.Len(t, c.Table("a", "t").Metadata.CurrentSchema().Fields(), 2)
}
