# What the examples share: a cluster of separate processes in a temporary directory. Source it, then call start_cluster.
#
# Sets: root (the checkout), bin (its binaries, or SIGNET_BIN), work (the directory), address (the scheduler's). Everything is stopped and removed at the end, however the script ends.
# May be set before: catalogs, more_catalogs, more_config (YAML for the configuration), scheduler_command (another scheduler's program).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${SIGNET_BIN:-$root/bin}
work=$(mktemp -d "${TMPDIR:-/tmp}/signet-example.XXXXXX")
scheduler_pid=
executor_pids=()
other_pids=() # of what else a script starts

stop_all() {
  local status=$?
  trap - EXIT
  local pids=("${executor_pids[@]}" "${other_pids[@]}" $scheduler_pid)
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
${catalogs:-  lake: {type: sql, uri: 'sqlite://$work/catalog.db', warehouse: 'file://$work/warehouse'\}}
${more_catalogs:+$more_catalogs
}executors:
  local: 0
${more_config:-}
YAML
}

# start_scheduler: the address is printed once it serves.
start_scheduler() {
  : > "$work/address"
  ${scheduler_command:-"$bin/signet" scheduler} --config "$work/signet.yaml" > "$work/address" 2>> "$work/scheduler.log" &
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
  await_executors "$1"
}

await_executors() {
  until [ "$("$bin/signet" info --scheduler "$address" | grep -c '^executor ')" -ge "$1" ]; do sleep 0.1; done
}

sql() { "$bin/signet" sql --scheduler "$address" --quiet "$@"; }

# build_sink NAME PACKAGE: builds a sink of Go, and makes a plugin directory of it, and of nothing else.
build_sink() {
  mkdir -p "$work/plugins"
  (cd "$root" && CGO_ENABLED=0 go build -o "$work/plugins/signet-sink-$1" "$2")
  TMPDIR=$work "$bin/signet" sink lock --dir "$work/plugins" > /dev/null # it starts the plugin, to ask what it is
  more_config="plugins: {dir: '$work/plugins'${more_plugins:+, $more_plugins}}"
}

# run STATEMENT: says what it does.
run() {
  printf '\n> %s\n' "$1"
  sql "$@"
}

# write STATEMENT: the same, and a line in place of the wide row that a write answers with. Arguments behind it go to signet sql.
write() {
  printf '\n> %s\n' "$1"
  sql --output csv "$@" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    END { if (NR > 1) printf "%s rows in %s files, version %s, attempts: %s, already committed: %s\n", $1, $2, $at["version"], $at["attempts"], $at["already_committed"] }'
}

# value QUERY: the only value of the only row.
value() { sql --output csv "$1" | tail -n 1 | tr -d '\r'; }

# expect ROWS TABLE
expect() {
  local got
  got=$(value "SELECT count(*) FROM $2")
  [ "$got" = "$1" ] || { echo "expected $1 rows in $2, found $got" >&2; exit 1; }
  echo "$2 has $got rows"
}

# python_with FILE: sets python, one that has the packages of a requirements file, installed once into .cache of the checkout. Where there is no Python, or no
# way to the packages, the script ends with 77.
python_with() {
  local venv
  venv=$root/.cache/venv-$(sha256sum "$1" | cut -c1-16)
  python=$venv/bin/python
  [ ! -e "$venv/complete" ] || return 0
  command -v "${PYTHON:-python3}" > /dev/null || { echo "skipped: there is no ${PYTHON:-python3}" >&2; exit 77; }
  rm -rf "$venv"
  { "${PYTHON:-python3}" -m venv "$venv" && "$python" -m pip install --quiet --disable-pip-version-check -r "$1"; } >&2 ||
    { echo "skipped: the packages of $1 cannot be installed" >&2; exit 77; }
  touch "$venv/complete"
}
