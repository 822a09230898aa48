#!/usr/bin/env bash
# Builds the webhook sink, writes twice under one key and once more, and shows what a receiver heard that is busy at first.
set -euo pipefail
. "$(dirname "$0")/../../lib.sh"

(cd "$root" && CGO_ENABLED=0 go build -o "$work/receiver" ./examples/sinks/webhook/receiver)
"$work/receiver" -fail 2 > "$work/heard" &
other_pids+=($!)
until grep -q '^listening on ' "$work/heard"; do sleep 0.05; done
receiver=$(sed -n 's/^listening on //p' "$work/heard")

# The address is the operator's word for where the host connects the plugin; the URL with its token is a secret that it asks for.
printf '{"url": "http://%s/hook?token=t0ps3cret", "signing_key": "k"}' "$receiver" > "$work/receiver.json"
chmod 600 "$work/receiver.json"
more_plugins="secrets: {webhook: {receiver: {file: '$work/receiver.json'}}}, dial: {webhook: {receiver: '$receiver'}}"
build_sink webhook ./examples/sinks/webhook
catalogs="  files: {type: sink, sink: webhook, root: 'file://$work/files'}"
start_cluster 1

sql "CREATE TABLE files.demo.orders (id BIGINT)" > /dev/null
write "INSERT INTO files.demo.orders SELECT i FROM range(1000) r(i)" --idempotency-key monday
write "INSERT INTO files.demo.orders SELECT i FROM range(1000) r(i)" --idempotency-key monday
write "INSERT INTO files.demo.orders SELECT i FROM range(500) r(i)" --idempotency-key tuesday
expect 1500 files.demo.orders

printf '\nWhat the receiver heard:\n'
grep -v '^listening on ' "$work/heard"
if grep -rq t0ps3cret "$work"/*.log "$work/data" "$work/files"; then
  echo "the token of the URL is in a file of Signet" >&2
  exit 1
fi
