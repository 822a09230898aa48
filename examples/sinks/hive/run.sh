#!/usr/bin/env bash
# Builds the hive sink, writes a partitioned table with it, replaces one partition, and reads the table with DuckDB and pyarrow.
set -euo pipefail
. "$(dirname "$0")/../../lib.sh"

here=$root/examples/sinks/hive
python_with "$here/requirements.txt"
build_sink hive ./examples/sinks/hive
catalogs="  files: {type: sink, sink: hive, root: 'file://$work/files'}"
start_cluster 1
cd "$root" # the statements name the file as a reader would
flights=examples/data/flights.parquet

run "CREATE TABLE files.demo.flights (date TIMESTAMP, delay BIGINT, distance BIGINT, origin VARCHAR, destination VARCHAR) PARTITIONED BY (origin)"
write "INSERT INTO files.demo.flights SELECT * FROM '$flights' WHERE origin IN ('SFO', 'JFK', 'ORD')"
write "INSERT OVERWRITE PARTITIONS INTO files.demo.flights SELECT * FROM '$flights' WHERE origin = 'JFK' AND delay <= 60"
run "SELECT origin, count(*), sum(distance) FROM files.demo.flights GROUP BY origin ORDER BY origin"

run "SELECT count(*) AS before FROM files.demo.flights VERSION AS OF 0"

printf '\n> read.py files/demo/flights\n'
"$python" "$here/read.py" "$work/files/demo/flights"
