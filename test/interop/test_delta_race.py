"""Signet, delta-rs and Spark append to one Delta table at a time, each commit after commit: each that was acknowledged is in the log once, no version is missing,
and all rows are there once."""
import collections
import os
import subprocess
import threading

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

import delta
from cluster import BIN

pytestmark = pytest.mark.skipif(bool(os.environ.get("INTEROP_WRITER")), reason="the writer is not Signet")

WRITERS, ROWS = 4, 10


def ids(writer: int, n: int) -> list[int]:
    return [(writer * 1000 + n) * ROWS + i for i in range(ROWS)]


class Race:
    def __init__(self, cluster, spark, name: str, each: int):
        self.cluster, self.spark, self.name, self.each = cluster, spark, name, each
        self.path = cluster.delta / "race" / name
        self.landed, self.failures, self.conflicts = [], [], collections.Counter()
        cluster.sql(f"CREATE TABLE {delta.CATALOG}.race.{name} (id BIGINT, who VARCHAR)")

    def signet(self, writer: int):
        for n in range(self.each):
            statement = f"INSERT INTO {delta.CATALOG}.race.{self.name} SELECT {ids(writer, n)[0]} + i, 'signet' FROM range({ROWS}) r(i)"
            args = [BIN / "signet", "sql", "--quiet", "--scheduler", self.cluster.address, "--idempotency-key", f"{self.name}-{writer}-{n}", statement]
            r = subprocess.run(args, capture_output=True, text=True, timeout=300)
            if r.returncode != 0:
                self.failures.append((writer, n, r.stderr))
                return
            self.landed += ids(writer, n)

    def delta_rs(self, writer: int):
        for n in range(self.each):
            while True:
                try:
                    write_deltalake(str(self.path), pa.table({"id": pa.array(ids(writer, n), pa.int64()), "who": ["delta-rs"] * ROWS}), mode="append")
                    break
                except CommitFailedError:  # it gives up after 15 collisions
                    self.conflicts["delta-rs"] += 1
            self.landed += ids(writer, n)

    def spark_appends(self, writer: int):
        for n in range(self.each):
            first = ids(writer, n)[0]
            self.spark.range(first, first + ROWS).selectExpr("id", "'spark' AS who").coalesce(1).write.format("delta").mode("append").save(str(self.path))
            self.landed += ids(writer, n)

    def run(self):
        def guarded(f, writer):
            try:
                f(writer)
            except Exception as e:
                self.failures.append((f.__name__, writer, str(e)[:500]))

        work = [(self.signet, w) for w in range(WRITERS)] + [(self.delta_rs, WRITERS), (self.spark_appends, WRITERS + 1)]
        threads = [threading.Thread(target=guarded, args=w) for w in work]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def check(self):
        assert not self.failures
        want = sorted(self.landed)
        assert len(want) == (WRITERS + 2) * self.each * ROWS
        delta.check_log(self.path)
        assert sorted(r["id"] for r in delta.delta_rs(self.path)) == want
        assert sorted(r[0] for r in self.spark.read.format("delta").load(str(self.path)).select("id").collect()) == want
        ours = self.cluster.sql(f"SELECT id FROM {delta.CATALOG}.race.{self.name}")
        assert sorted(r["id"] for r in ours) == want
        # An INSERT is a txn of its own; several may share a commit.
        log = DeltaTable(str(self.path)).history()
        engines = collections.Counter(("signet" if h.get("engineInfo", "").startswith("Signet/") else h.get("engineInfo", "?").split("/")[0].split(":")[0]) for h in log)
        markers = [a["txn"]["appId"] for actions in delta.commits(self.path).values() for a in actions if "txn" in a]
        assert len(markers) == len(set(markers)) == WRITERS * self.each, "one marker for each statement, none twice"
        adds = [a["add"]["path"] for actions in delta.commits(self.path).values() for a in actions if "add" in a]
        assert len(adds) == len(set(adds))
        print(f"{dict(engines)} commits for {WRITERS * self.each} statements of ours and {2 * self.each} others, {dict(self.conflicts)} times given up")


@pytest.mark.parametrize("each", [pytest.param(8, id="short"), pytest.param(50, id="long", marks=pytest.mark.nightly)])
def test_everybody_appends(cluster, spark, each):
    race = Race(cluster, spark, f"t{each}", each)
    race.run()
    race.check()
