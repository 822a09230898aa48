#!/usr/bin/env bash
# Python writes Parquet files with pyarrow; Signet commits them as one snapshot, once for a key. No executor takes part.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

here=$root/examples/external-write
python_with "$here/requirements.txt"
mkdir "$work/stubs"
"$python" -m grpc_tools.protoc -I "$root/api" --python_out="$work/stubs" --grpc_python_out="$work/stubs" plan/v1/plan.proto scheduler/v1/scheduler.proto
export PYTHONPATH=$work/stubs PYTHONDONTWRITEBYTECODE=1

start_cluster 1
sql "CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.events (id BIGINT, engine VARCHAR)" > /dev/null
for _ in 1 2; do
  printf '\n> write.py %s lake.demo.events load-1 3\n' "$address"
  "$python" "$here/write.py" "$address" lake.demo.events load-1 3
done
run "SELECT engine, count(*) AS n, min(id) AS first, max(id) AS last FROM lake.demo.events GROUP BY engine"
expect 3000 lake.demo.events
