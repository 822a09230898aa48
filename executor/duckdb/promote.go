package duckdb

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// promotions are the types a file's leaf may have for a table's column: the type itself, and those whose every value it holds exactly. Table formats
// allow fewer as an evolution, but files that were added rather than written by an engine carry the others.
var promotions = map[planv1.TypeKind][]string{
	planv1.TypeKind_TYPE_KIND_BOOLEAN:            {"BOOLEAN"},
	planv1.TypeKind_TYPE_KIND_INT8:               {"TINYINT"},
	planv1.TypeKind_TYPE_KIND_INT16:              {"SMALLINT", "TINYINT", "UTINYINT"},
	planv1.TypeKind_TYPE_KIND_INT32:              {"INTEGER", "SMALLINT", "TINYINT", "UTINYINT", "USMALLINT"},
	planv1.TypeKind_TYPE_KIND_INT64:              {"BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UTINYINT", "USMALLINT", "UINTEGER"},
	planv1.TypeKind_TYPE_KIND_FLOAT32:            {"FLOAT"},
	planv1.TypeKind_TYPE_KIND_FLOAT64:            {"DOUBLE", "FLOAT", "INTEGER", "SMALLINT", "TINYINT", "UTINYINT", "USMALLINT", "UINTEGER"},
	planv1.TypeKind_TYPE_KIND_DATE:               {"DATE"},
	planv1.TypeKind_TYPE_KIND_TIME_MICROS:        {"TIME"},
	planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:   {"TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S", "DATE"},
	planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS: {"TIMESTAMP WITH TIME ZONE"},
	planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:    {"TIMESTAMP_NS"},
	planv1.TypeKind_TYPE_KIND_STRING:             {"VARCHAR", "JSON"},
	planv1.TypeKind_TYPE_KIND_UUID:               {"UUID"},
	planv1.TypeKind_TYPE_KIND_FIXED:              {"BLOB"},
	planv1.TypeKind_TYPE_KIND_BINARY:             {"BLOB"},
}

// plainTimestamps are timestamps of at most microseconds without a zone.
var plainTimestamps = map[string]bool{"TIMESTAMP": true, "TIMESTAMP_MS": true, "TIMESTAMP_S": true}

var decimalType = regexp.MustCompile(`^DECIMAL\((\d+),(\d+)\)$`)

// convertLeaf answers src itself where nothing changes, so that the caller can see that.
func (m *mapper) convertLeaf(src string, want *planv1.Type, have *parquetNode) (string, bool) {
	if have.engine == "" || have.repeated || have.wideDecimal() {
		return "", false
	}
	if want.GetKind() == planv1.TypeKind_TYPE_KIND_DECIMAL {
		return decimalLeaf(src, want, have.engine)
	}
	for n, t := range promotions[want.GetKind()] {
		if t == have.engine {
			if n == 0 {
				return src, true
			}
			return "CAST(" + src + " AS " + sqlNames[want.GetKind()] + ")", true
		}
	}
	switch {
	case want.GetKind() == planv1.TypeKind_TYPE_KIND_UUID && have.engine == "BLOB" && have.physical == "FIXED_LEN_BYTE_ARRAY":
		return "CAST(lower(hex(" + src + ")) AS UUID)", true // 16 bytes without the annotation
	case want.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS && have.engine == "TIMESTAMP" && have.physical == "INT96":
		return "CAST(" + src + " AS TIMESTAMP WITH TIME ZONE)", true // INT96 is an instant in UTC, as the session's zone is
	case want.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS && (m.scanByName || have.logical == "" && strings.HasPrefix(have.converted, "TIMESTAMP_")) && plainTimestamps[have.engine]:
		// The old annotation means UTC. The new one may say that it is not, which Delta's own readers ignore for a column that the table says is UTC.
		return "CAST(" + src + " AS TIMESTAMP WITH TIME ZONE)", true
	}
	return "", false
}

// integerDigits are those that the values of an integer type may have.
var integerDigits = map[string]int32{"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}

// decimalLeaf allows decimals and integers that lose no digit in front of the point or behind it.
func decimalLeaf(src string, want *planv1.Type, engine string) (string, bool) {
	before, scale := integerDigits[engine], int32(0)
	if g := decimalType.FindStringSubmatch(engine); g != nil {
		p, errP := strconv.ParseInt(g[1], 10, 32)
		s, errS := strconv.ParseInt(g[2], 10, 32)
		if errP != nil || errS != nil {
			return "", false
		}
		before, scale = int32(p-s), int32(s)
		if int32(p) == want.GetPrecision() && scale == want.GetScale() {
			return src, true
		}
	} else if before == 0 {
		return "", false
	}
	if scale > want.GetScale() || before > want.GetPrecision()-want.GetScale() {
		return "", false
	}
	return fmt.Sprintf("CAST(%s AS DECIMAL(%d,%d))", src, want.GetPrecision(), want.GetScale()), true
}

// unionColumns selects the bound columns out of a file that may lack some of them.
func unionColumns(cols []*planv1.Column, root *parquetNode, hive []string) string {
	have := map[string]string{}
	for _, c := range root.children {
		have[strings.ToLower(c.name)] = c.name
	}
	for _, k := range hive {
		have[strings.ToLower(k)] = k
	}
	parts := make([]string, len(cols))
	for n, c := range cols {
		expr := "NULL"
		if name, ok := have[strings.ToLower(c.GetName())]; ok {
			expr = Ident(name)
		}
		parts[n] = fmt.Sprintf("CAST(%s AS %s) AS %s", expr, c.GetEngineType(), Ident(c.GetName()))
	}
	return strings.Join(parts, ", ")
}
