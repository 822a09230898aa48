#!/usr/bin/env bash
# Measures what the scheduler alone can do, how fast it is back after a restart, INSERT against DuckDB's COPY, the latency of a one-row INSERT, what the broker adds to a commit, many clients on one
# table, commits to a table with many snapshots, commits of many files, and INSERT into S3 where SeaweedFS was built. Makes TPC-H lineitem
# (10 million rows in 8 Parquet files) with tpchgen-cli once, below .cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=.cache/bench
mkdir -p "$cache"
if [ ! -f "$cache/done" ]; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet "tpchgen-cli==4.0.0"
  rm -rf "$cache/data"
  "$cache/venv/bin/tpchgen-cli" parquet -s 1.6667 --tables lineitem --parts 8 --output-dir "$cache/data"
  touch "$cache/done"
fi
"$cache/venv/bin/pip" install --quiet "pyiceberg[sql-sqlite,pyarrow]==0.12.0" # appended with in turn
"$cache/venv/bin/pip" install --quiet "deltalake==1.6.6" # as well
go build -o "$cache/bench" ./test/bench
"$cache/bench" latency
"$cache/bench" dispatch
"$cache/bench" dispatch --apart
"$cache/bench" restart
go test -run '^$' -bench Graph ./scheduler/graph
go test -run '^$' -bench Commit -benchtime 200x ./scheduler/broker
"$cache/bench" contention --venv "$cache/venv"
"$cache/bench" growth
"$cache/bench" growth --expire-after 20
"$cache/bench" files
"$cache/bench" insert --data "$cache/data/lineitem/*.parquet"
"$cache/bench" insert --catalog delta --venv "$cache/venv" --data "$cache/data/lineitem/*.parquet"
"$cache/bench" splice --catalog delta --data "$cache/data/lineitem/*.parquet"
"$cache/bench" latency --catalog delta
"$cache/bench" contention --catalog delta
"$cache/bench" splice --data "$cache/data/lineitem/*.parquet"
"$cache/bench" compact --data "$cache/data/lineitem/*.parquet"
"$cache/bench" partitioned --data "$cache/data/lineitem/*.parquet"
if [ -x .cache/bin/weed ]; then # make servers builds it
  SIGNET_BIN=$PWD/bin SIGNET_BENCH_DATA="$PWD/$cache/data/lineitem/*.parquet" CGO_ENABLED=0 go test -run '^$' -bench Insert -benchtime 3x -timeout 60m ./test/s3
fi
