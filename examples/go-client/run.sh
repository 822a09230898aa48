#!/usr/bin/env bash
# A Go program writes through the client package, twice under one key.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

(cd "$root" && CGO_ENABLED=0 go build -o "$work/go-client" ./examples/go-client)
start_cluster 1
sql "CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.orders (id BIGINT, weekday BIGINT)" > /dev/null

for _ in 1 2; do
  printf '\n> go-client %s load-2026-11-29\n' "$address"
  "$work/go-client" "$address" load-2026-11-29
done
expect 1000 lake.demo.orders
