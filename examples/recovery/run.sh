#!/usr/bin/env bash
# The scheduler is killed in the middle of a commit, at three moments. What is started again finishes each job, once.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

start_cluster 1
write_config "${address##*:}" # the next schedulers listen where this one did
sql "CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT)" > /dev/null

insert="INSERT INTO lake.demo.t SELECT i FROM range(1000) r(i)"
# Each commit and each change of the table makes one.
versions() { ls "$work"/warehouse/demo/t/metadata/*.metadata.json | wc -l; }

# crash POINT ROWS WHAT: kills the scheduler with SIGKILL at a fault point (docs/fault-points.md), looks at the table while there is none, and starts another.
crash() {
  local status=0 before
  printf '\n%s\n' "$3"
  kill "$scheduler_pid" && wait "$scheduler_pid" || true
  before=$(versions)
  SIGNET_FAILPOINTS=$1=kill start_scheduler
  sql --retry-for 1s --idempotency-key "$1" "$insert" 2> "$work/client.err" || status=$?
  wait "$scheduler_pid" 2>/dev/null || true
  echo "the client exits with $status and knows nothing; new versions of the table: $(($(versions) - before))"
  [ "$status" = 5 ] || { cat "$work/client.err" >&2; exit 1; }

  start_scheduler # it reads its journal and goes on; the client may ask again, under its key
  write "$insert" --idempotency-key "$1"
  expect "$2" lake.demo.t
}

crash scheduler.seal.before-journal 1000 "1. The commit is built; nothing is decided."
crash broker.seal.after 2000 "2. The decision to commit is durable; nothing was sent."
crash broker.commit.after-send 3000 "3. The table has changed; the scheduler has not heard of it."
