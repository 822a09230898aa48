package tpch

import (
	"fmt"
	"strings"
)

// Table is a table and the query that makes its rows.
type Table struct{ Name, SQL string }

// words are picked by a number.
func words(number string, of ...string) string {
	quoted := make([]string, len(of))
	for i, w := range of {
		quoted[i] = "'" + w + "'"
	}
	return fmt.Sprintf("[%s][1 + CAST(%s AS INTEGER)]", strings.Join(quoted, ", "), pick(number, len(of)))
}

// pick is a number below n that looks random, for a number and a salt: "i, 3".
func pick(number string, n int) string { return fmt.Sprintf("(hash(%s) %% %d)", number, n) }

func money(number string, low, cents int) string {
	return fmt.Sprintf("CAST(%d + %s / 100.0 AS DECIMAL(15,2))", low, pick(number, cents))
}

func phone(nation, number string) string {
	return fmt.Sprintf("CAST(10 + %s AS VARCHAR) || '-' || CAST(100 + %s AS VARCHAR) || '-' || CAST(1000 + %s AS VARCHAR)", nation, pick(number+", 'a'", 899), pick(number+", 'b'", 8999))
}

var (
	colors   = []string{"almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "forest", "frosted", "green", "honeydew", "indian", "ivory", "khaki"}
	nations  = "ALGERIA 0,ARGENTINA 1,BRAZIL 1,CANADA 1,EGYPT 4,ETHIOPIA 0,FRANCE 3,GERMANY 3,INDIA 2,INDONESIA 2,IRAN 4,IRAQ 4,JAPAN 2,JORDAN 4,KENYA 0,MOROCCO 0,MOZAMBIQUE 0,PERU 1,CHINA 2,ROMANIA 3,SAUDI ARABIA 4,VIETNAM 2,RUSSIA 3,UNITED KINGDOM 3,UNITED STATES 1"
	types1   = []string{"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"}
	types2   = []string{"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"}
	types3   = []string{"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"}
	boxes1   = []string{"SM", "LG", "MED", "JUMBO", "WRAP"}
	boxes2   = []string{"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"}
	segments = []string{"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"}
	modes    = []string{"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"}
	orders   = []string{"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"}
	instruct = []string{"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"}
	comments = []string{"carefully final", "special packages requests", "quickly ironic", "Customer slow Complaints", "pending deposits", "furiously even"}
)

// Tables are the eight tables at a scale; 1 is 6 million line items.
func Tables(scale float64) []Table {
	n := func(rows int) int { return max(10, int(float64(rows)*scale)) }
	suppliers, customers, parts, orderCount := n(10_000), n(150_000), n(200_000), n(1_500_000)
	var nationRows []string
	for i, s := range strings.Split(nations, ",") {
		at := strings.LastIndexByte(s, ' ')
		nationRows = append(nationRows, fmt.Sprintf("(%d, '%s', %s)", i, s[:at], s[at+1:]))
	}
	return []Table{
		{"region", "SELECT CAST(i AS INTEGER) AS r_regionkey, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][i + 1] AS r_name, 'c' || i AS r_comment FROM range(5) r(i)"},
		{"nation", "SELECT CAST(k AS INTEGER) AS n_nationkey, n AS n_name, CAST(r AS INTEGER) AS n_regionkey, 'c' || k AS n_comment FROM (VALUES " + strings.Join(nationRows, ", ") + ") v(k, n, r)"},
		{"supplier", fmt.Sprintf(`SELECT i + 1 AS s_suppkey, 'Supplier#' || lpad(CAST(i + 1 AS VARCHAR), 9, '0') AS s_name, 'addr ' || i AS s_address, CAST(nk AS INTEGER) AS s_nationkey,
			%s AS s_phone, %s AS s_acctbal, %s AS s_comment FROM (SELECT i, %s AS nk FROM range(%d) r(i))`,
			phone("nk", "i"), money("i, 1", -999, 1_000_000), words("i, 2", comments...), "i * 7 % 25", suppliers)},
		{"customer", fmt.Sprintf(`SELECT i + 1 AS c_custkey, 'Customer#' || lpad(CAST(i + 1 AS VARCHAR), 9, '0') AS c_name, 'addr ' || i AS c_address, CAST(nk AS INTEGER) AS c_nationkey,
			%s AS c_phone, %s AS c_acctbal, %s AS c_mktsegment, %s AS c_comment FROM (SELECT i, %s AS nk FROM range(%d) r(i))`,
			phone("nk", "i"), money("i, 4", -999, 1_000_000), words("i, 5", segments...), words("i, 6", comments...), pick("i, 7", 25), customers)},
		{"part", fmt.Sprintf(`SELECT i + 1 AS p_partkey, %s || ' ' || %s AS p_name, 'Manufacturer#' || m AS p_mfgr, 'Brand#' || m || (1 + %s) AS p_brand,
			%s || ' ' || %s || ' ' || %s AS p_type, CAST(1 + %s AS INTEGER) AS p_size, %s || ' ' || %s AS p_container, %s AS p_retailprice, %s AS p_comment
			FROM (SELECT i, 1 + %s AS m FROM range(%d) r(i))`,
			words("i, 8", colors...), words("i, 9", colors...), pick("i, 10", 5), words("i, 11", types1...), words("i, 12", types2...), words("i, 13", types3...),
			pick("i, 14", 50), words("i, 15", boxes1...), words("i, 16", boxes2...), money("i, 17", 900, 100_000), words("i, 18", comments...), pick("i, 19", 5), parts)},
		{"partsupp", fmt.Sprintf(`SELECT CAST(p + 1 AS BIGINT) AS ps_partkey, CAST(1 + (p + j * (%d // 4 + 1)) %% %d AS BIGINT) AS ps_suppkey, CAST(1 + %s AS INTEGER) AS ps_availqty,
			%s AS ps_supplycost, %s AS ps_comment FROM range(%d) a(p), range(4) b(j)`,
			suppliers, suppliers, pick("p, j, 20", 9999), money("p, j, 21", 1, 99_900), words("p, j, 22", comments...), parts)},
		{"orders", fmt.Sprintf(`SELECT i * 4 + 1 AS o_orderkey, CAST(1 + (%s // 3) * 3 %% %d AS BIGINT) AS o_custkey, ['F', 'O', 'P'][1 + CAST(%s AS INTEGER)] AS o_orderstatus,
			%s AS o_totalprice, DATE '1992-01-01' + CAST(%s AS INTEGER) AS o_orderdate, %s AS o_orderpriority,
			'Clerk#' || %s AS o_clerk, CAST(0 AS INTEGER) AS o_shippriority, %s AS o_comment FROM range(%d) r(i)`,
			pick("i, 23", customers), customers, pick("i, 24", 3), money("i, 25", 850, 50_000_000), pick("i, 26", 2406), words("i, 27", orders...), pick("i, 28", 1000), words("i, 29", comments...), orderCount)},
		{"lineitem", fmt.Sprintf(`SELECT i * 4 + 1 AS l_orderkey, CAST(pk + 1 AS BIGINT) AS l_partkey, CAST(1 + (pk + %s * (%d // 4 + 1)) %% %d AS BIGINT) AS l_suppkey, CAST(j + 1 AS INTEGER) AS l_linenumber,
			CAST(CASE WHEN i %% 97 = 0 THEN 46 + %s // 10 ELSE 1 + %s END AS DECIMAL(15,2)) AS l_quantity, %s AS l_extendedprice, CAST(%s / 100.0 AS DECIMAL(15,2)) AS l_discount, CAST(%s / 100.0 AS DECIMAL(15,2)) AS l_tax,
			CASE WHEN ship < DATE '1995-06-17' THEN ['R', 'A'][1 + CAST(%s AS INTEGER)] ELSE 'N' END AS l_returnflag, CASE WHEN ship > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus,
			ship AS l_shipdate, od + CAST(30 + %s AS INTEGER) AS l_commitdate, ship + CAST(1 + %s AS INTEGER) AS l_receiptdate, %s AS l_shipinstruct, %s AS l_shipmode, %s AS l_comment
			FROM (SELECT i, j, %s AS pk, od, od + CAST(1 + %s AS INTEGER) AS ship FROM (SELECT i, DATE '1992-01-01' + CAST(%s AS INTEGER) AS od, 1 + %s AS lines FROM range(%d) r(i)), range(7) b(j) WHERE j < lines)`,
			pick("i, j, 30", 4), suppliers, suppliers, pick("i, j, 31", 50), pick("i, j, 31", 50), money("i, j, 32", 900, 10_000_000), pick("i, j, 33", 11), pick("i, j, 34", 9), pick("i, j, 35", 2),
			pick("i, j, 36", 61), pick("i, j, 37", 30), words("i, j, 38", instruct...), words("i, j, 39", modes...), words("i, j, 40", comments...),
			pick("i, j, 41", parts), pick("i, j, 42", 121), pick("i, 26", 2406), pick("i, 43", 7), orderCount)},
	}
}
