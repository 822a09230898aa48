package flightsql

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
)

// Tables have no keys: these lists are empty.

func nothing(*array.RecordBuilder) {}

// GetFlightInfoPrimaryKeys implements Flight SQL.
func (s *server) GetFlightInfoPrimaryKeys(_ context.Context, _ fsql.TableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.PrimaryKeys)
}

// DoGetPrimaryKeys implements Flight SQL.
func (s *server) DoGetPrimaryKeys(context.Context, fsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.PrimaryKeys, nothing)
}

// GetFlightInfoExportedKeys implements Flight SQL.
func (s *server) GetFlightInfoExportedKeys(_ context.Context, _ fsql.TableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.ExportedKeys)
}

// DoGetExportedKeys implements Flight SQL.
func (s *server) DoGetExportedKeys(context.Context, fsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.ExportedKeys, nothing)
}

// GetFlightInfoImportedKeys implements Flight SQL.
func (s *server) GetFlightInfoImportedKeys(_ context.Context, _ fsql.TableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.ImportedKeys)
}

// DoGetImportedKeys implements Flight SQL.
func (s *server) DoGetImportedKeys(context.Context, fsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.ImportedKeys, nothing)
}

// GetFlightInfoCrossReference implements Flight SQL.
func (s *server) GetFlightInfoCrossReference(_ context.Context, _ fsql.CrossTableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.CrossReference)
}

// DoGetCrossReference implements Flight SQL.
func (s *server) DoGetCrossReference(context.Context, fsql.CrossTableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.CrossReference, nothing)
}
