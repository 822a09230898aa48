package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// Permissions hold on every way in: Flight SQL's statements, prepared statements and lists, external write sessions, plans.
//
// Numbers in docs/semantics.md: J21.
func TestPermissions_EveryEntry(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	c, _ := permitted(t, "flight: {listen: '"+addr+"'}\n")
	c.SQL("CREATE SCHEMA lake.demo; CREATE SCHEMA lake.other; CREATE TABLE lake.other.hidden (id BIGINT); CREATE TABLE lake.demo.t (id BIGINT)")
	cl, err := newFlightClient(addr)
	require.NoError(t, err)
	defer cl.Close()
	bearer := func(who string) context.Context {
		return metadata.AppendToOutgoingContext(harness.Context(t), "authorization", "Bearer token-of-"+who)
	}
	reader, writer := principalOf(read), principalOf(insert)

	lists := func(who string) (out []string) {
		ctx := bearer(who)
		add := func(info *flight.FlightInfo, err error) {
			require.NoError(t, err)
			out = append(out, flightRows(ctx, t, cl, info)...)
		}
		add(cl.GetCatalogs(ctx))
		add(cl.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{}))
		add(cl.GetTables(ctx, &flightsql.GetTablesOpts{IncludeSchema: false}))
		return out
	}
	catalog, schema := `{"catalog_name":"lake"}`, `{"catalog_name":"lake","db_schema_name":"demo"}`
	table := `{"catalog_name":"lake","db_schema_name":"demo","table_name":"t","table_type":"TABLE"}`
	require.Equal(t, []string{catalog, schema, table}, lists(reader))
	require.Equal(t, []string{catalog}, lists(writer))
	require.Empty(t, lists("stranger"))
	require.Len(t, lists("admin"), 5)

	refused := func(err error) {
		t.Helper()
		require.Error(t, err)
		require.Contains(t, []codes.Code{codes.PermissionDenied, codes.NotFound}, status.Code(err), "%v", err)
	}
	for _, name := range []string{"other.hidden", "other.nosuch"} {
		_, err = cl.Execute(bearer(reader), "SELECT * FROM lake."+name)
		refused(err)
		_, err = cl.Prepare(bearer(reader), "SELECT * FROM lake."+name)
		refused(err)
		_, err = cl.Prepare(bearer(reader), "SELECT * FROM lake."+name+" WHERE id = ?")
		refused(err)
		_, err = cl.ExecuteUpdate(bearer(reader), "INSERT INTO lake."+name+" VALUES (1)")
		refused(err)
	}
	_, err = cl.Execute(bearer(writer), "SELECT * FROM lake.demo.t")
	refused(err)
	info, err := cl.Execute(bearer(reader), "SELECT * FROM lake.demo.t")
	require.NoError(t, err)
	require.Empty(t, flightRows(bearer(reader), t, cl, info))

	dial := func(who string) schedulerv1.SchedulerClient {
		api, err := client.Dial(c.Address, client.WithToken("token-of-"+who), client.WithRetry(0))
		require.NoError(t, err)
		t.Cleanup(func() { _ = api.Close() })
		return api.Raw()
	}
	for _, name := range []string{"lake.demo.t", "lake.other.hidden", "lake.other.nosuch"} {
		_, err = dial(reader).BeginWrite(harness.Context(t), &schedulerv1.BeginWriteRequest{Table: name, Tasks: 1})
		require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	}
	s, err := dial(writer).BeginWrite(harness.Context(t), &schedulerv1.BeginWriteRequest{Table: "lake.demo.t", Tasks: 1})
	require.NoError(t, err)
	_, err = dial(writer).AbortWrite(harness.Context(t), &schedulerv1.AbortWriteRequest{JobId: s.GetJobId()})
	require.NoError(t, err)

	plan := &planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{{Tasks: []*planv1.PhysicalTask{{
		Sql: "SELECT * FROM v", Inputs: []*planv1.PhysicalInput{{View: "v", Kind: &planv1.PhysicalInput_Table{Table: "lake.other.hidden"}}},
	}}}}}
	api := dial(reader)
	j, err := api.Submit(harness.Context(t), &schedulerv1.SubmitRequest{PhysicalPlan: plan})
	require.NoError(t, err)
	var end *schedulerv1.Job
	harness.Eventually(t, "the plan ends", func() bool {
		r, err := api.GetJob(harness.Context(t), &schedulerv1.GetJobRequest{JobId: j.GetJobId()})
		require.NoError(t, err)
		end = r.GetJob()
		return client.Terminal(end.GetState())
	})
	require.Equal(t, "denied", end.GetError().GetCode(), "%v", end.GetError())
}
