#!/usr/bin/env bash
# Two schedulers write to one table at the same time: two appends both land, an UPDATE of rows that are gone meanwhile is refused.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

# The west scheduler builds each of two commits and stops right before it lets it through (docs/fault-points.md), until there is a file. The east one never stops.
more_config="cluster: west"
export SIGNET_FAILPOINTS="broker.seal.before=1*off->1*pause($work/gate-1)->1*off->pause($work/gate-2)"
start_cluster 1
unset SIGNET_FAILPOINTS
west=$address
other_pids+=("$scheduler_pid")

sed -i -e "s|^data_dir: .*|data_dir: $work/east|" -e 's|^cluster: .*|cluster: east|' "$work/signet.yaml"
start_scheduler
start_executor east
await_executors 1
east=$address

address=$west
sql "CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT, who VARCHAR)" > /dev/null
write "INSERT INTO lake.demo.t VALUES (1, 'nobody'), (2, 'nobody')"

# A manifest list is the last file that the sink writes before it asks for the commit.
lists() { ls "$work"/warehouse/demo/t/metadata/snap-*.avro | wc -l; }

# race GATE WEST EAST: the statement in the west has built its commit when the one in the east begins, and goes on when that has committed.
race() {
  local status=0 before
  before=$(lists)
  address=$west write "$2" > "$work/west.out" 2>&1 &
  local waiting=$!
  until [ "$(lists)" -gt "$before" ]; do
    kill -0 "$waiting" 2>/dev/null || { cat "$work/west.out" >&2; exit 1; }
    sleep 0.05
  done
  address=$east write "$3"
  touch "$work/$1"
  wait "$waiting" || status=$?
  cat "$work/west.out"
  return "$status"
}

printf '\n1. Both append. The slower one finds another table than it built on, builds again, and lands: attempts: 2.\n'
race gate-1 "INSERT INTO lake.demo.t VALUES (3, 'west')" "INSERT INTO lake.demo.t VALUES (4, 'east')"
expect 4 lake.demo.t

printf '\n2. The slower one changes a row that the faster one has removed: it cannot be built again from what it read, and fails.\n'
if race gate-2 "UPDATE lake.demo.t SET who = 'west' WHERE id = 1" "DELETE FROM lake.demo.t WHERE id = 1"; then
  echo "it did not fail" >&2
  exit 1
fi
run "SELECT id, who FROM lake.demo.t ORDER BY id"
