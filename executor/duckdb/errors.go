package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
)

// UserError is a refusal of our own: the statement or its data is wrong, and a retry would not help.
type UserError struct {
	Message string // what was wrong, where
	Hint    string // what to do
	Limit   bool   // it is not wrong, but more than the configuration allows
}

func (e *UserError) Error() string { return e.Message }

func userErrorf(hint, format string, args ...any) error {
	return &UserError{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// prefixes are the openings of DuckDB's error texts. The C API gives a type with results but only a text with prepared statements; the driver
// reads it the same way.
var prefixes = map[string]duckdb.ErrorType{
	"Out of Range Error": duckdb.ErrorTypeOutOfRange, "Conversion Error": duckdb.ErrorTypeConversion,
	"Decimal Error": duckdb.ErrorTypeOutOfRange, "Mismatch Type Error": duckdb.ErrorTypeMismatchType,
	"Divide by Zero Error": duckdb.ErrorTypeDivideByZero, "Object Size Error": duckdb.ErrorTypeObjectSize,
	"Invalid type Error": duckdb.ErrorTypeInvalidType, "Serialization Error": duckdb.ErrorTypeSerialization,
	"TransactionContext Error": duckdb.ErrorTypeTransaction, "Not implemented Error": duckdb.ErrorTypeNotImplemented,
	"Expression Error": duckdb.ErrorTypeExpression, "Catalog Error": duckdb.ErrorTypeCatalog, "Parser Error": duckdb.ErrorTypeParser,
	"Constraint Error": duckdb.ErrorTypeConstraint, "Syntax Error": duckdb.ErrorTypeSyntax, "Settings Error": duckdb.ErrorTypeSettings,
	"Binder Error": duckdb.ErrorTypeBinder, "IO Error": duckdb.ErrorTypeIO, "INTERRUPT Error": duckdb.ErrorTypeInterrupt,
	"FATAL Error": duckdb.ErrorTypeFatal, "INTERNAL Error": duckdb.ErrorTypeInternal,
	"Invalid Input Error": duckdb.ErrorTypeInvalidInput, "Out of Memory Error": duckdb.ErrorTypeOutOfMemory,
	"Permission Error": duckdb.ErrorTypePermission, "Parameter Not Resolved Error": duckdb.ErrorTypeParameterNotResolved,
	"Parameter Not Allowed Error": duckdb.ErrorTypeParameterNotAllowed, "Dependency Error": duckdb.ErrorTypeDependency,
	"HTTP Error": duckdb.ErrorTypeHTTP, "Missing Extension Error": duckdb.ErrorTypeMissingExtension,
	"Extension Autoloading Error": duckdb.ErrorTypeAutoLoad, "Sequence Error": duckdb.ErrorTypeSequence,
	"Invalid Configuration Error": duckdb.ErrorTypeInvalidConfiguration,
}

func errorFromText(msg string) error {
	prefix, _, _ := strings.Cut(msg, ": ")
	return &duckdb.Error{Type: prefixes[prefix], Msg: msg}
}

// ErrorFromText makes the error that the driver would have made of a DuckDB error text.
func ErrorFromText(msg string) error { return errorFromText(msg) }

// PlanError says what an error of this package, of DuckDB or of a context means for the job. Nil stays nil.
func PlanError(err error) *planv1.Error {
	if err == nil {
		return nil
	}
	if ue := (*UserError)(nil); errors.As(err, &ue) {
		class := planv1.ErrorClass_ERROR_CLASS_USER
		if ue.Limit {
			class = planv1.ErrorClass_ERROR_CLASS_LIMIT
		}
		return &planv1.Error{Class: class, Message: ue.Message, Hint: ue.Hint}
	}
	if de := (*duckdb.Error)(nil); errors.As(err, &de) {
		return fromDuckDB(de)
	}
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &pathErr), errors.Is(err, fault.ErrInjected):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: err.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrPoolClosed):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_KILLED, Message: err.Error()}
	case errors.Is(err, ErrNotSelect):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: err.Error()}
	default:
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: err.Error()}
	}
}

func fromDuckDB(de *duckdb.Error) *planv1.Error {
	out := &planv1.Error{Class: classOf(de)}
	var ok bool
	if out.Message, out.Hint, ok = csvError(de.Msg); !ok {
		out.Message, out.Hint = splitText(de.Msg)
	}
	switch de.Type {
	case duckdb.ErrorTypePermission:
		out.Hint = "a query sees the files and tables that it names in FROM, and nothing else"
	case duckdb.ErrorTypeBinder:
		if strings.Contains(de.Msg, "DEFAULT is not allowed") {
			out.Hint = "leave the column out of the INSERT's list of columns: it becomes its write default, or NULL"
		}
	case duckdb.ErrorTypeInvalidInput:
		if strings.Contains(de.Msg, "More than one row returned by a subquery") {
			out.Hint = "make the subquery give one row: with an aggregate, a condition, or LIMIT 1"
		}
	case duckdb.ErrorTypeOutOfMemory:
		out.Hint = "raise the executor's memory limit, or run fewer slots on it"
	}
	return out
}

func classOf(de *duckdb.Error) planv1.ErrorClass {
	switch de.Type {
	case duckdb.ErrorTypeInterrupt:
		return planv1.ErrorClass_ERROR_CLASS_KILLED
	case duckdb.ErrorTypeOutOfMemory:
		return planv1.ErrorClass_ERROR_CLASS_RESOURCE
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeHTTP, duckdb.ErrorTypeNetwork, duckdb.ErrorTypeConnection:
		if strings.Contains(de.Msg, "No space left on device") { // strerror(ENOSPC); DuckDB keeps no errno
			return planv1.ErrorClass_ERROR_CLASS_RESOURCE
		}
		return planv1.ErrorClass_ERROR_CLASS_IO
	case duckdb.ErrorTypeInvalid:
		if strings.HasPrefix(de.Msg, "Invalid Error: ") { // what DuckDB calls a plain exception: of its Parquet reader, mostly
			return planv1.ErrorClass_ERROR_CLASS_USER
		}
		return planv1.ErrorClass_ERROR_CLASS_INTERNAL
	case duckdb.ErrorTypeInternal, duckdb.ErrorTypeFatal, duckdb.ErrorTypeUnknownType, duckdb.ErrorTypeNullPointer,
		duckdb.ErrorTypeOptimizer, duckdb.ErrorTypePlanner, duckdb.ErrorTypeScheduler, duckdb.ErrorTypeExecutor, duckdb.ErrorTypeSerialization,
		duckdb.ErrorTypeTransaction, duckdb.ErrorTypeSettings, duckdb.ErrorTypeInvalidConfiguration:
		return planv1.ErrorClass_ERROR_CLASS_INTERNAL
	default:
		return planv1.ErrorClass_ERROR_CLASS_USER
	}
}

// maxHint bounds what is taken over of DuckDB's advice, in bytes.
const maxHint = 600

// setsSomething finds advice to change a setting of DuckDB.
var setsSomething = regexp.MustCompile(`(?i)\b(SET|PRAGMA)\s+(GLOBAL\s+|SESSION\s+)?\w+\s*=`)

// splitText keeps the first line as the message and DuckDB's own advice as the hint; the quoted query (LINE 1: ...) is not what the user typed,
// and stack traces are for logs.
func splitText(msg string) (first, hint string) {
	lines := strings.Split(msg, "\n")
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Stack Trace") || strings.HasPrefix(line, "LINE ") {
			break
		}
		if setsSomething.MatchString(line) { // which no statement of Signet may
			continue
		}
		if line != "" && len(hint)+len(line) < maxHint { // candidate functions may fill pages
			hint = strings.TrimSpace(hint + " " + line)
		}
	}
	return strings.TrimSpace(lines[0]), hint
}
