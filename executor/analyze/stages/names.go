package stages

import (
	"slices"
	"strings"
)

// What is known of DuckDB 1.5's functions by name. A test compares these lists with duckdb_functions().

// volatile functions answer something else each time: a task that runs again would give other rows.
var volatile = []string{
	"random", "gen_random_uuid", "uuid", "uuidv4", "uuidv7", "setseed", "nextval", "currval", "error", "stats", "sleep_ms", "write_log", "current_query",
	"current_query_id", "current_connection_id", "current_transaction_id", "pg_sleep",
}

// timely functions are constant within a query, but not between the tasks of one. Those that tell the time have become constants by now.
var timely = []string{
	"now", "today", "current_date", "get_current_time", "get_current_timestamp", "transaction_timestamp", "txid_current", "in_search_path",
	"current_database", "current_schema", "current_schemas", "ago", "current_time", "current_timestamp", "current_localtime", "current_localtimestamp",
	"localtime", "localtimestamp", "pg_conf_load_time", "pg_postmaster_start_time", "current_catalog", "alias",
}

// merging aggregates can be computed in parts; the value is the function that merges the parts. avg is taken apart separately.
var merging = map[string]string{
	"count": "sum", "count_star": "sum", "count_if": "sum", "countif": "sum", "sum": "sum", "min": "min", "max": "max", "bool_and": "bool_and",
	"bool_or": "bool_or", "bit_and": "bit_and", "bit_or": "bit_or", "bit_xor": "bit_xor", "product": "product", "avg": "", "mean": "",
}

// counting aggregates are 0 over no rows. count_if is none of them: it is a sum, and NULL over no rows.
var counting = []string{"count", "count_star"}

// blind aggregates do not see duplicates: DISTINCT changes nothing.
var blind = []string{"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"}

// orderless aggregates need all rows of a group together, in whatever order.
var orderless = []string{
	"median", "quantile", "quantile_cont", "quantile_disc", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance", "sem", "mad", "entropy",
	"skewness", "kurtosis", "kurtosis_pop", "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
	"regr_sxx", "regr_sxy", "regr_syy", "favg", "fsum", "kahan_sum", "sumkahan", "histogram", "approx_count_distinct", "bitstring_agg", "histogram_exact",
	"geomean", "geometric_mean", "wavg", "weighted_avg",
}

// ordered aggregates depend on the order in which rows come.
var ordered = []string{
	"any_value", "arbitrary", "first", "first_value", "last", "last_value", "arg_max", "arg_max_null", "arg_max_nulls_last", "arg_min", "arg_min_null",
	"arg_min_nulls_last", "argmax", "argmin", "max_by", "min_by", "array_agg", "list", "listagg", "string_agg", "group_concat", "mode", "approx_quantile",
	"approx_top_k", "reservoir_quantile", "sum_no_overflow", "json_group_array", "json_group_object", "json_group_structure",
}

// windowOnly are listed by DuckDB among the aggregates, but stand in OVER only.
var windowOnly = []string{"cume_dist", "dense_rank", "fill", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "rank_dense", "row_number"}

func isAggregate(name string) bool {
	name = strings.ToLower(name)
	_, merges := merging[name]
	return merges || slices.Contains(orderless, name) || slices.Contains(ordered, name)
}

func isVolatile(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(volatile, name) || slices.Contains(timely, name)
}

// manyRows are functions that make several rows of one.
var manyRows = []string{"unnest", "generate_subscripts", "regexp_split_to_table"}

// named by their arguments: a struct's fields are called after the columns that they are made of.
var namesFields = []string{"struct_pack", "row", "struct_insert", "struct_update", "json_object"}
