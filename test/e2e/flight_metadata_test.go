package e2e_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// X19: GetTables has four or five columns, as asked, with the protocol's nullability, in the FlightInfo and in the stream; filters are patterns.
func TestFlight_TablesMetadata(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	for _, s := range []string{
		"CREATE SCHEMA lake.sales", "CREATE SCHEMA lake.sales_old", "CREATE TABLE lake.sales.orders (id BIGINT NOT NULL, amount DECIMAL(9,2), note VARCHAR, tags VARCHAR[])",
		"CREATE TABLE lake.sales.order_items (id INT)", `CREATE TABLE lake.sales."order%items" (id INT)`, "CREATE TABLE lake.sales_old.orders (id INT)",
	} {
		flightUpdate(t, cl, s)
	}
	list := func(opts *flightsql.GetTablesOpts) []string {
		info, err := cl.GetTables(ctx, opts)
		require.NoError(t, err)
		want := schema_ref.Tables
		if opts.IncludeSchema {
			want = schema_ref.TablesWithIncludedSchema
		}
		promised, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		require.True(t, promised.Equal(want))
		rec := readAll(ctx, t, cl, info.Endpoint[0].Ticket)
		require.True(t, rec.Schema().Equal(want))
		var out []string
		for i := range int(rec.NumRows()) {
			require.Equal(t, "lake", rec.Column(0).(*array.String).Value(i))
			require.Equal(t, "TABLE", rec.Column(3).(*array.String).Value(i))
			out = append(out, rec.Column(1).(*array.String).Value(i)+"."+rec.Column(2).(*array.String).Value(i))
		}
		return out
	}
	text := func(s string) *string { return &s }
	all := []string{"sales.order%items", "sales.order_items", "sales.orders", "sales_old.orders"}
	require.Equal(t, all, list(&flightsql.GetTablesOpts{}))
	require.Equal(t, all, list(&flightsql.GetTablesOpts{IncludeSchema: true}))
	require.Equal(t, all, list(&flightsql.GetTablesOpts{Catalog: text("lake"), DbSchemaFilterPattern: text("%"), TableNameFilterPattern: text("%"), TableTypes: []string{"VIEW", "TABLE"}}))
	require.Empty(t, list(&flightsql.GetTablesOpts{Catalog: text("")}))
	require.Empty(t, list(&flightsql.GetTablesOpts{Catalog: text("other")}))
	require.Empty(t, list(&flightsql.GetTablesOpts{TableTypes: []string{"VIEW"}}))
	require.Equal(t, all[:3], list(&flightsql.GetTablesOpts{DbSchemaFilterPattern: text("sales")}))
	require.Equal(t, all[3:], list(&flightsql.GetTablesOpts{DbSchemaFilterPattern: text(`sales\_%`)}))
	require.Equal(t, all[:2], list(&flightsql.GetTablesOpts{TableNameFilterPattern: text("order_items")}))
	require.Equal(t, all[1:2], list(&flightsql.GetTablesOpts{TableNameFilterPattern: text(`order\_items`)}))
	require.Equal(t, all[:1], list(&flightsql.GetTablesOpts{TableNameFilterPattern: text(`order\%items`)}))

	// The schema of a table is that of its rows.
	info, err := cl.GetTables(ctx, &flightsql.GetTablesOpts{IncludeSchema: true, TableNameFilterPattern: text("orders"), DbSchemaFilterPattern: text("sales")})
	require.NoError(t, err)
	raw := readAll(ctx, t, cl, info.Endpoint[0].Ticket).Column(4).(*array.Binary).Value(0)
	said, err := flight.DeserializeSchema(raw, memory.DefaultAllocator)
	require.NoError(t, err)
	rows, err := cl.Execute(ctx, "SELECT * FROM lake.sales.orders")
	require.NoError(t, err)
	sent, err := flight.DeserializeSchema(rows.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	for i, f := range sent.Fields() {
		require.Equal(t, f.Name, said.Field(i).Name)
		require.True(t, arrow.TypeEqual(f.Type, said.Field(i).Type), "%s: %s, %s", f.Name, f.Type, said.Field(i).Type)
	}
	require.False(t, said.Field(0).Nullable)
	require.True(t, said.Field(1).Nullable)
	meta := said.Field(1).Metadata
	precision, ok := (&flightsql.ColumnMetadata{Data: &meta}).Precision()
	require.True(t, ok)
	require.EqualValues(t, 9, precision)
}

func TestFlight_OtherMetadata(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 0})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.a")
	flightUpdate(t, cl, "CREATE SCHEMA lake.b")
	info := func(i *flight.FlightInfo, err error) []string {
		require.NoError(t, err)
		return flightRows(ctx, t, cl, i)
	}
	require.Equal(t, []string{`{"catalog_name":"lake"}`}, info(cl.GetCatalogs(ctx)))
	require.Equal(t, []string{`{"catalog_name":"lake","db_schema_name":"a"}`, `{"catalog_name":"lake","db_schema_name":"b"}`}, info(cl.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{})))
	pattern := "b%"
	require.Len(t, info(cl.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{DbSchemaFilterPattern: &pattern})), 1)
	require.Equal(t, []string{`{"table_type":"TABLE"}`}, info(cl.GetTableTypes(ctx)))
	ref := flightsql.TableRef{Table: "t"}
	require.Empty(t, info(cl.GetPrimaryKeys(ctx, ref)))
	require.Empty(t, info(cl.GetExportedKeys(ctx, ref)))
	require.Empty(t, info(cl.GetImportedKeys(ctx, ref)))
	require.Empty(t, info(cl.GetCrossReference(ctx, ref, ref)))

	require.Greater(t, len(info(cl.GetXdbcTypeInfo(ctx, nil))), 10)
	bigint := int32(-5)
	require.Contains(t, info(cl.GetXdbcTypeInfo(ctx, &bigint))[0], `"type_name":"BIGINT"`)

	all, err := cl.GetSqlInfo(ctx, nil)
	require.NoError(t, err)
	require.Greater(t, readAll(ctx, t, cl, all.Endpoint[0].Ticket).NumRows(), int64(30))
	some, err := cl.GetSqlInfo(ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerName, flightsql.SqlInfoFlightSqlServerTransaction, 999_999})
	require.NoError(t, err)
	rec := readAll(ctx, t, cl, some.Endpoint[0].Ticket)
	require.EqualValues(t, 2, rec.NumRows(), "what is not known is left out")
	none, err := cl.GetSqlInfo(ctx, []flightsql.SqlInfo{999_999})
	require.NoError(t, err)
	require.Empty(t, flightRows(ctx, t, cl, none))
}
