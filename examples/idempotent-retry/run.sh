#!/usr/bin/env bash
# The same statement under the same key: twice in a row, and again after the scheduler was killed in the middle of the commit.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

start_cluster 1
port=${address##*:}
write_config "$port" # the next scheduler listens where this one did

sql "CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT, what VARCHAR)" > /dev/null
insert="INSERT INTO lake.demo.t SELECT i, 'order' FROM range(1000) r(i)"

echo "1. the same key twice"
write "$insert" --idempotency-key order-1
write "$insert" --idempotency-key order-1
expect 1000 lake.demo.t

printf '\n%s\n' "2. a key for another statement is refused"
if sql --idempotency-key order-1 "INSERT INTO lake.demo.t VALUES (1, 'other')"; then
  echo "it was not" >&2
  exit 1
fi

printf '\n%s\n' "3. the scheduler is killed right after its commit request has left, before it knows the answer"
kill "$scheduler_pid" && wait "$scheduler_pid" || true
SIGNET_FAILPOINTS=${KILL_AT:-broker.commit.after-send}=kill start_scheduler
status=0
sql --retry-for 1s --idempotency-key order-2 "$insert" || status=$?
echo "the client exits with $status: it does not know whether its rows are there"
[ "$status" = 5 ] || exit 1
wait "$scheduler_pid" 2>/dev/null || true

printf '\n%s\n' "4. the scheduler is back; the client sends the statement again, under the same key"
start_scheduler
write "$insert" --idempotency-key order-2
expect 2000 lake.demo.t
