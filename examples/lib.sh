# What the examples share: a cluster of separate processes in a temporary directory. Source it, then call start_cluster.
#
# Sets: work (the directory), address (the scheduler's). Everything is stopped and removed at the end, however the script ends.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${SIGNET_BIN:-$root/bin}
work=$(mktemp -d "${TMPDIR:-/tmp}/signet-example.XXXXXX")
scheduler_pid=
executor_pids=()

stop_all() {
  local status=$?
  trap - EXIT
  local pids=("${executor_pids[@]}" $scheduler_pid)
  if [ ${#pids[@]} -gt 0 ]; then
    kill "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
  fi
  if [ "$status" -ne 0 ] && [ -e "$work/scheduler.log" ]; then
    echo "--- the scheduler's log ends:" >&2
    tail -n 20 "$work/scheduler.log" >&2
  fi
  rm -rf "$work"
  exit "$status"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

write_config() {
  cat > "$work/signet.yaml" <<YAML
data_dir: $work/data
listen: 127.0.0.1:${1:-0}
catalogs:
  lake:
    type: sql
    uri: sqlite://$work/catalog.db
    warehouse: file://$work/warehouse
executors:
  local: 0
YAML
}

# start_scheduler: the address is printed once it serves.
start_scheduler() {
  : > "$work/address"
  "$bin/signet" scheduler --config "$work/signet.yaml" > "$work/address" 2>> "$work/scheduler.log" &
  scheduler_pid=$!
  until grep -q '^listening on ' "$work/address"; do
    kill -0 "$scheduler_pid" 2>/dev/null || { echo "the scheduler did not start" >&2; exit 1; }
    sleep 0.05
  done
  address=$(sed -n 's/^listening on //p' "$work/address")
}

start_executor() {
  "$bin/signet" executor --scheduler "$address" --scratch "$work/scratch-$1" --slots 2 --memory 1GiB 2>> "$work/executor-$1.log" &
  executor_pids+=($!)
}

# start_cluster N: a scheduler and N executors.
start_cluster() {
  write_config
  start_scheduler
  for n in $(seq "$1"); do start_executor "$n"; done
  until [ "$("$bin/signet" info --scheduler "$address" | grep -c '^executor ')" -ge "$1" ]; do sleep 0.1; done
}

sql() { "$bin/signet" sql --scheduler "$address" --quiet "$@"; }
