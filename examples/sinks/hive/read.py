"""Reads a table of the hive sink with DuckDB and with pyarrow: read.py DIRECTORY"""

import json
import pathlib
import sys

import duckdb
import pyarrow.dataset as ds


def newest(table):
    """The newest commit: _SUCCESS says where to begin, the numbers behind it what has come since."""
    hint = table / "_SUCCESS"
    number = int(json.loads(hint.read_text())["version"]) if hint.exists() else 0
    while (table / f"_success/{number + 1:020}.json").exists():
        number += 1
    return json.loads((table / f"_success/{number:020}.json").read_text())


table = pathlib.Path(sys.argv[1])
commit = newest(table)
print(f"version {int(commit['version'])}: {len(commit['files'])} files, partitions {sorted({f['partition'] for f in commit['files']})}")

files = [str(table / f["path"]) for f in commit["files"]]
print("DuckDB: ", duckdb.sql("SELECT origin, count(*), sum(distance) FROM read_parquet($files) GROUP BY origin ORDER BY origin", params={"files": files}).fetchall())

# Partitions are pruned by the list, before a file is opened.
jfk = [str(table / f["path"]) for f in commit["files"] if f["partition"] == "origin=JFK"]
print("pyarrow:", ds.dataset(files).count_rows(), "rows, of them in origin=JFK:", ds.dataset(jfk).count_rows())
