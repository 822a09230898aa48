#!/usr/bin/env bash
# A scheduler, two executors and the Iceberg sink as separate processes: CREATE TABLE AS, INSERT, a query. `make run` runs this.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

echo "Starting a scheduler and two executors in $work"
start_cluster 2
"$bin/signet" info --scheduler "$address"

cd "$root" # the statements name the file as a reader would
flights=examples/data/flights.parquet
run "CREATE SCHEMA lake.demo"
run "CREATE TABLE lake.demo.flights PARTITIONED BY (day(date)) AS SELECT * FROM '$flights' WHERE date < '2001-01-16'"
run "INSERT INTO lake.demo.flights SELECT * FROM '$flights' WHERE date >= '2001-01-16'"
run "SELECT origin, count(*) AS flights, round(avg(delay), 1) AS avg_delay FROM lake.demo.flights GROUP BY origin ORDER BY flights DESC LIMIT 5"

total=$(sql --output csv "SELECT count(*) FROM lake.demo.flights" | tail -n 1 | tr -d '\r')
[ "$total" = 508239 ] || { echo "expected 508239 rows, the table has $total" >&2; exit 1; }
printf '\nAll %s rows are there. Stopping.\n' "$total"
