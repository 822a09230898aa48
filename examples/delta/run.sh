#!/usr/bin/env bash
# A Delta table: CREATE TABLE AS, INSERT, DELETE, its history, and its log as any reader of Delta sees it.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

more_catalogs="  delta: {type: delta, root: 'file://$work/delta'}"
start_cluster 1
cd "$root" # the statements name the file as a reader would
flights=examples/data/flights.parquet

write "CREATE TABLE delta.demo.flights PARTITIONED BY (origin) AS SELECT * FROM '$flights' WHERE origin IN ('SFO', 'JFK') AND date < '2001-01-16'"
write "INSERT INTO delta.demo.flights SELECT * FROM '$flights' WHERE origin IN ('SFO', 'JFK') AND date >= '2001-01-16'"
write "DELETE FROM delta.demo.flights WHERE delay > 300"
run "SELECT origin, count(*) AS flights, max(delay) AS longest FROM delta.demo.flights GROUP BY origin ORDER BY origin"
run "SELECT count(*) AS flights FROM delta.demo.flights VERSION AS OF 1"

printf '\nThe log in %s, one version a commit:\n' "delta/demo/flights/_delta_log"
for f in "$work"/delta/demo/flights/_delta_log/*.json; do
  printf '%s: %s files added, %s removed\n' "$(basename "$f")" "$(grep -c '^{"add"' "$f")" "$(grep -c '^{"remove"' "$f")"
done
expect 15509 delta.demo.flights
