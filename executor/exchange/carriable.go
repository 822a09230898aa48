package exchange

import "github.com/signet-io/signet/executor/duckdb"

// Carriable tells whether columns of a DuckDB type, as duckdb.TypeOf spells it, come through an exchange exactly. A query whose stages would
// have to exchange another type is not divided.
func Carriable(engineType string) bool {
	_, ok := duckdb.Carrier(engineType)
	return ok
}
