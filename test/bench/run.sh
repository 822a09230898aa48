#!/usr/bin/env bash
# Measures INSERT against DuckDB's COPY, the latency of a one-row INSERT, and what the broker adds to a commit. Makes TPC-H lineitem
# (10 million rows in 8 Parquet files) with tpchgen-cli once, below .cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=.cache/bench
mkdir -p "$cache"
if [ ! -f "$cache/lineitem/done" ]; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet tpchgen-cli==2.0.1 2>/dev/null || "$cache/venv/bin/pip" install --quiet tpchgen-cli
  rm -rf "$cache/lineitem" && mkdir -p "$cache/lineitem"
  for part in 1 2 3 4 5 6 7 8; do
    "$cache/venv/bin/tpchgen-cli" --scale-factor 1.6667 --tables lineitem --parts 8 --part "$part" --format parquet --output-dir "$cache/lineitem/$part"
  done
  touch "$cache/lineitem/done"
fi
go build -o "$cache/bench" ./test/bench
"$cache/bench" latency
go test -run '^$' -bench Commit -benchtime 200x ./scheduler/broker
"$cache/bench" insert --data "$cache/lineitem/*/*.parquet"
