#!/usr/bin/env bash
# Runs the 22 queries of TPC-H and QUERIES random ones, from seed FIRST on, over three executors, and compares them with one DuckDB. Makes the tables with
# tpchgen-cli once, at SCALE, each in PARTS files of several row groups. Arguments go to the tests: `run.sh -query 7` runs one query.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=${SIGNET_CACHE:-$PWD/.cache}/tpch
scale=${SCALE:-0.1} parts=${PARTS:-4} version=4.0.0

data=$cache/scale-$scale-parts-$parts-$version
if [ ! -e "$data/done" ]; then
  venv=$cache/venv-$version
  if [ ! -e "$venv/done" ]; then
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "tpchgen-cli==$version"
    touch "$venv/done"
  fi
  rm -rf "$data"
  "$venv/bin/tpchgen-cli" parquet -s "$scale" --parts "$parts" --row-group-bytes 1MiB --output-dir "$data"
  touch "$data/done"
fi

report=$cache/report.md
SIGNET_BIN=${SIGNET_BIN:-$PWD/bin} CGO_ENABLED=1 go test -count=1 -timeout 0 -v ./test/tpch \
  -args -data "$data" -queries "${QUERIES:-1000}" -first "${FIRST:-1}" -report "$report" "$@"
[ $# -gt 0 ] || cat "$report"
