#!/usr/bin/env bash
# A scheduler of our own compares two tables: its root answers every query with a digest of its rows.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

(cd "$root" && CGO_ENABLED=0 go build -o "$work/custom-root" ./examples/custom-root)
more_config="plugins: {dir: '$bin/plugins'}"
scheduler_command=$work/custom-root
start_cluster 2
cd "$root"

sql "CREATE SCHEMA lake.demo" > /dev/null
write "CREATE TABLE lake.demo.a AS SELECT * FROM 'examples/data/flights.parquet'"
write "CREATE TABLE lake.demo.b PARTITIONED BY (day(date)) AS SELECT * FROM 'examples/data/flights.parquet' ORDER BY delay"
for table in a b; do
  run "SELECT * FROM lake.demo.$table" --set signet.min_task_bytes=100000
done
a=$(value "SELECT * FROM lake.demo.a") b=$(value "SELECT * FROM lake.demo.b")
[ "${a##*,}" = "${b##*,}" ] || { echo "the digests differ: $a, $b" >&2; exit 1; }
echo "The tables hold the same rows."
