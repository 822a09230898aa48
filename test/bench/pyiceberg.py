"""Clients append one row at a time to one table with PyIceberg, each as fast as it can: pyiceberg.py DIR CLIENTS SECONDS. Prints JSON."""
import json
import multiprocessing
import sys
import time

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog


def catalog(home):
    return SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")


def client(home, n, deadline, out):
    appended = failed = i = 0
    while time.time() < deadline:
        i += 1
        row = pa.table({"id": pa.array([n * 2**32 + i], pa.int64()), "name": ["one row"]})
        try:
            catalog(home).load_table("b.t").append(row)
            appended += 1
        except Exception:  # noqa: BLE001 - whatever it is, the append has failed
            failed += 1
    out.put((appended, failed))


def main():
    home, clients, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cat = catalog(home)
    cat.create_namespace("b")
    cat.create_table("b.t", schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    out = multiprocessing.Queue()
    begun = time.time()
    procs = [multiprocessing.Process(target=client, args=(home, n, begun + seconds, out)) for n in range(clients)]
    for p in procs:
        p.start()
    got = [out.get() for _ in procs]
    for p in procs:
        p.join()
    table = catalog(home).load_table("b.t")
    print(json.dumps({
        "Appends": sum(a for a, _ in got), "Failed": sum(f for _, f in got), "Snapshots": len(table.snapshots()),
        "Rows": int(table.current_snapshot().summary["total-records"]), "Seconds": time.time() - begun,
    }))


if __name__ == "__main__":
    main()
