"""8 clients with 25 INSERTs each into one table, while PyIceberg appends to it: every row is there once."""
import os
import subprocess
import threading

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy.exc import OperationalError

from cluster import BIN, CATALOG

CLIENTS, INSERTS, ROWS = 8, 25, 10

pytestmark = pytest.mark.skipif(os.environ.get("INTEROP_WRITER") == "pyiceberg", reason="the writer is PyIceberg")


def insert(cluster, client: int, failures: list):
    """One client: a process for each statement, as a scheduled load would run it."""
    for n in range(INSERTS):
        base = (client * INSERTS + n) * ROWS
        statement = f"INSERT INTO {CATALOG}.race.t SELECT {base} + i, 'signet' FROM range({ROWS}) r(i)"
        r = subprocess.run(
            [BIN / "signet", "sql", "--quiet", "--scheduler", cluster.address, "--idempotency-key", f"race-{client}-{n}", statement],
            capture_output=True, text=True, timeout=300,
        )
        if r.returncode != 0:
            failures.append((client, n, r.stderr))


def append(cluster, stop: threading.Event, landed: list, name: str = "t"):
    """PyIceberg beside them. It gives up on conflicts that Signet retries; a lost race is not a failure here, a lost row would be."""
    table, n = cluster.pyiceberg().load_table(("race", name)), 0
    while not stop.is_set() or not landed:
        ids = list(range(10_000_000 + n * ROWS, 10_000_000 + (n + 1) * ROWS))
        n += 1
        try:
            table.append(pa.table({"id": pa.array(ids, pa.int64()), "who": pa.array(["pyiceberg"] * ROWS)}))
            landed += ids
        except (CommitFailedException, OperationalError):
            table = cluster.pyiceberg().load_table(("race", name))


def test_everybody_appends(cluster):
    cluster.sql(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.race; CREATE TABLE {CATALOG}.race.t (id BIGINT, who VARCHAR)")
    failures, landed, stop = [], [], threading.Event()
    other = threading.Thread(target=append, args=(cluster, stop, landed))
    clients = [threading.Thread(target=insert, args=(cluster, c, failures)) for c in range(CLIENTS)]
    for t in [other, *clients]:
        t.start()
    for t in clients:
        t.join()
    stop.set()
    other.join()
    assert not failures
    want = sorted([*range(CLIENTS * INSERTS * ROWS), *landed])
    table = cluster.pyiceberg().load_table(("race", "t"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == want
    ours = [r["id"] for r in cluster.sql(f"SELECT id FROM {CATALOG}.race.t ORDER BY id")]
    assert ours == want
    commits = [s for s in table.snapshots() if s.summary.additional_properties.get("engine-name") == "signet"]
    markers = [m for s in commits for m in s.summary.additional_properties["signet.markers"].split(",")]
    assert len(markers) == len(set(markers)) == CLIENTS * INSERTS, "one marker for each statement, none twice"
    print(f"{len(commits)} commits of ours for {CLIENTS * INSERTS} statements, {len(landed) // ROWS} of PyIceberg's")


CROWD, EACH = 32, int(os.environ.get("INTEROP_CROWD_INSERTS", "10"))


def crowd(cluster, client: int, failures: list):
    """One client of many: one-row INSERTs, one behind the other."""
    rows = range(client * EACH, (client + 1) * EACH)
    r = subprocess.run(
        [BIN / "signet", "sql", "--quiet", "--scheduler", cluster.address, "-"], capture_output=True, text=True, timeout=900,
        input="\n".join(f"INSERT INTO {CATALOG}.race.crowd VALUES ({i}, 'signet');" for i in rows),
    )
    if r.returncode != 0:
        failures.append((client, r.stderr))


def compact(spark, stop: threading.Event, done: list, lost: list):
    """Spark rewrites the table's files again and again. It may lose a race, and then it has changed nothing."""
    while not stop.is_set():
        try:
            r = spark.sql(f"CALL {CATALOG}.system.rewrite_data_files(table => 'race.crowd', options => map('rewrite-all', 'true'))").collect()[0]
            done.append(r["rewritten_data_files_count"])
        except Exception as e:  # noqa: BLE001 - whatever it is, the rewrite has failed, and the rows tell whether it has done harm
            lost.append(str(e).splitlines()[0])


def test_spark_compacts_beside_everybody(cluster, spark):
    """32 clients append one row each time, PyIceberg appends beside them, and Spark compacts: no append of ours fails, no row is lost, none is there twice."""
    cluster.sql(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.race; CREATE TABLE {CATALOG}.race.crowd (id BIGINT, who VARCHAR)")
    failures, landed, done, lost, stop, last = [], [], [], [], threading.Event(), threading.Event()
    pyiceberg = threading.Thread(target=append, args=(cluster, stop, landed, "crowd"))
    spark_thread = threading.Thread(target=compact, args=(spark, last, done, lost))
    clients = [threading.Thread(target=crowd, args=(cluster, c, failures)) for c in range(CROWD)]
    for t in [pyiceberg, spark_thread, *clients]:
        t.start()
    for t in clients:
        t.join()
    stop.set()
    pyiceberg.join()
    last.set()
    spark_thread.join()
    assert not failures
    if not done:  # it has lost every race
        compact(spark, OnceOnly(), done, lost)
    want = sorted([*range(CROWD * EACH), *landed])
    table = cluster.pyiceberg().load_table(("race", "crowd"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == want
    assert sorted(r[0] for r in spark.sql(f"SELECT id FROM {CATALOG}.race.crowd").collect()) == want
    assert [r["id"] for r in cluster.sql(f"SELECT id FROM {CATALOG}.race.crowd ORDER BY id")] == want
    commits = [s for s in table.snapshots() if s.summary.additional_properties.get("engine-name") == "signet"]
    markers = [m for s in commits for m in s.summary.additional_properties["signet.markers"].split(",")]
    assert len(markers) == len(set(markers)) == CROWD * EACH, "one marker for each statement, none twice"
    print(f"{len(commits)} commits of ours for {CROWD * EACH} statements, {len(landed) // ROWS} of PyIceberg's, {len(done)} of Spark's, which lost {len(lost)} races")


class OnceOnly(threading.Event):
    """Is not set the first time that somebody asks."""

    def is_set(self):
        was = super().is_set()
        self.set()
        return was
