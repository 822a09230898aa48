package flightsql

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
)

// arrowVersion is that of the format in which results are written.
const arrowVersion = "1.5"

// registerInfo says what the server can do.
func (s *server) registerInfo() {
	for id, v := range map[fsql.SqlInfo]any{
		fsql.SqlInfoFlightSqlServerName:                        "Signet",
		fsql.SqlInfoFlightSqlServerVersion:                     s.Version,
		fsql.SqlInfoFlightSqlServerArrowVersion:                arrowVersion,
		fsql.SqlInfoFlightSqlServerReadOnly:                    false,
		fsql.SqlInfoFlightSqlServerSql:                         true,
		fsql.SqlInfoFlightSqlServerSubstrait:                   false,
		fsql.SqlInfoFlightSqlServerTransaction:                 int32(fsql.SqlTransactionNone),
		fsql.SqlInfoFlightSqlServerCancel:                      true,
		fsql.SqlInfoFlightSqlServerBulkIngestion:               true,
		fsql.SqlInfoFlightSqlServerIngestTransactionsSupported: false,
		fsql.SqlInfoFlightSqlServerStatementTimeout:            int32(0), // none
		fsql.SqlInfoFlightSqlServerTransactionTimeout:          int32(0),
		fsql.SqlInfoDDLCatalog:                                 false,
		fsql.SqlInfoDDLSchema:                                  true,
		fsql.SqlInfoDDLTable:                                   true,
		fsql.SqlInfoIdentifierCase:                             int64(fsql.SqlCaseSensitivityCaseInsensitive),
		fsql.SqlInfoQuotedIdentifierCase:                       int64(fsql.SqlCaseSensitivityCaseInsensitive),
		fsql.SqlInfoIdentifierQuoteChar:                        `"`,
		fsql.SqlInfoAllTablesAreASelectable:                    true,
		fsql.SqlInfoNullOrdering:                               int64(fsql.SqlNullOrderingSortAtEnd),
		fsql.SqlInfoKeywords:                                   []string{},
		fsql.SqlInfoNumericFunctions:                           []string{"abs", "ceil", "exp", "floor", "ln", "log", "pow", "round", "sign", "sqrt", "trunc"},
		fsql.SqlInfoStringFunctions:                            []string{"concat", "length", "lower", "ltrim", "replace", "rtrim", "substring", "trim", "upper"},
		fsql.SqlInfoSystemFunctions:                            []string{},
		fsql.SqlInfoDateTimeFunctions:                          []string{"current_date", "current_timestamp", "date_part", "date_trunc", "extract", "now"},
		fsql.SqlInfoSearchStringEscape:                         `\`,
		fsql.SqlInfoExtraNameChars:                             "",
		fsql.SqlInfoSupportsColumnAliasing:                     true,
		fsql.SqlInfoNullPlusNullIsNull:                         true,
		fsql.SqlInfoSupportsTableCorrelationNames:              true,
		fsql.SqlInfoSupportsDifferentTableCorrelationNames:     false,
		fsql.SqlInfoSupportsExpressionsInOrderBy:               true,
		fsql.SqlInfoSupportsOrderByUnrelated:                   true,
		fsql.SqlInfoSupportsLikeEscapeClause:                   true,
		fsql.SqlInfoSupportsNonNullableColumns:                 true,
		fsql.SqlInfoSupportsIntegrityEnhancementFacility:       false,
		fsql.SqlInfoSchemaTerm:                                 "schema",
		fsql.SqlInfoCatalogTerm:                                "catalog",
		fsql.SqlInfoProcedureTerm:                              "procedure",
		fsql.SqlInfoCatalogAtStart:                             true,
		fsql.SqlInfoSelectForUpdateSupported:                   false,
		fsql.SqlInfoStoredProceduresSupported:                  false,
		fsql.SqlInfoCorrelatedSubqueriesSupported:              true,
		fsql.SqlInfoTransactionsSupported:                      false,
		fsql.SqlInfoDataDefinitionCausesTransactionCommit:      false,
		fsql.SqlInfoDataDefinitionsInTransactionsIgnored:       false,
		fsql.SqlInfoBatchUpdatesSupported:                      true,
		fsql.SqlInfoSavePointsSupported:                        false,
		fsql.SqlInfoNamedParametersSupported:                   false,
		fsql.SqlInfoLocatorsUpdateCopy:                         false,
		fsql.SqlInfoStoredFunctionsUsingCallSyntaxSupported:    false,
		fsql.SqlInfoMaxStatementLen:                            int64(12 << 20),
	} {
		if err := s.RegisterSqlInfo(id, v); err != nil {
			s.Logger.Error("information about the server is left out", "id", int(id), "error", err)
			continue
		}
		s.known = append(s.known, uint32(id))
	}
}

// DoGetSqlInfo leaves out what is not known: clients ask for all that any server might say.
func (s *server) DoGetSqlInfo(ctx context.Context, cmd fsql.GetSqlInfo) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	if len(cmd.GetInfo()) == 0 {
		return s.BaseServer.DoGetSqlInfo(ctx, sqlInfoIDs(s.known))
	}
	var ids sqlInfoIDs
	for _, id := range cmd.GetInfo() {
		for _, k := range s.known {
			if k == id {
				ids = append(ids, id)
				break
			}
		}
	}
	if len(ids) == 0 {
		return s.batch(schema_ref.SqlInfo, nothing)
	}
	return s.BaseServer.DoGetSqlInfo(ctx, ids)
}

type sqlInfoIDs []uint32

// GetInfo implements fsql.GetSqlInfo.
func (ids sqlInfoIDs) GetInfo() []uint32 { return ids }
