#!/usr/bin/env bash
# Runs the interop suite. Arguments go to pytest: `run.sh -k pyiceberg` leaves Spark out. `run.sh --setup` only installs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${SIGNET_CACHE:-$root/.cache}
venv=$cache/interop-venv
jars=$cache/interop-jars

stamp=$venv/.installed-$(sha256sum "$here/requirements.txt" | cut -c1-16)
if [ ! -e "$stamp" ]; then
  rm -rf "$venv"
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  touch "$stamp"
fi

mkdir -p "$jars"
for artifact in org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0 org.xerial:sqlite-jdbc:3.46.1.3 org.apache.arrow:flight-sql-jdbc-driver:18.3.0 \
  io.delta:delta-spark_2.13:4.0.1 io.delta:delta-storage:4.0.1 org.antlr:antlr4-runtime:4.13.1; do
  name=$(cut -d: -f2,3 <<<"$artifact" | tr : -).jar
  if [ ! -e "$jars/$name" ]; then
    mvn --quiet --batch-mode dependency:get -Dtransitive=false -Dartifact="$artifact"
    mvn --quiet --batch-mode dependency:copy -Dartifact="$artifact" -DoutputDirectory="$jars"
  fi
done

make --silent -C "$root" CACHE="$cache" "$cache/rest-lib/complete"

[ "${1:-}" != --setup ] || exit 0

export SIGNET_BIN=${SIGNET_BIN:-$root/bin} INTEROP_JARS=$jars INTEROP_REST_LIB=$cache/rest-lib TZ=UTC PYTHONDONTWRITEBYTECODE=1 SPARK_LOCAL_IP=127.0.0.1
cd "$here"
exec "$venv/bin/python" -m pytest -p no:cacheprovider -ra --tb=short "$@"
