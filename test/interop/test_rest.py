"""A catalog behind Iceberg's own REST adapter: Signet and PyIceberg write to the same tables, and read the same rows."""
import os
import pathlib
import subprocess
import threading

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from cluster import Cluster

CREDENTIAL = "me:s3cret"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The adapter's address and its warehouse."""
    d = tmp_path_factory.mktemp("rest")
    fixture = pathlib.Path(__file__).parent.parent / "servers/restfixture/RestFixture.java"
    log = open(d / "adapter.log", "w")
    p = subprocess.Popen(
        ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", os.environ["INTEROP_REST_LIB"] + "/*", fixture, "0", f"file://{d}/warehouse", d / "catalog.db", f"oauth={CREDENTIAL}"],
        stdout=subprocess.PIPE, stderr=log, text=True,
    )
    line = p.stdout.readline()
    assert line.startswith("ready "), (d / "adapter.log").read_text()[-2000:]
    threading.Thread(target=p.stdout.read, daemon=True).start()
    yield line.split()[1], f"file://{d}/warehouse"
    p.kill()
    p.wait()
    log.close()


@pytest.fixture(scope="module")
def cluster(server, tmp_path_factory):
    uri, warehouse = server
    d = tmp_path_factory.mktemp("cluster")
    (d / "credential").write_text(CREDENTIAL)
    (d / "credential").chmod(0o600)
    c = Cluster(d / "c", catalogs=(
        f"  prod:\n    type: rest\n    uri: {uri}\n    warehouse: {warehouse}\n    secret: {{credential: {{file: {d}/credential}}}}\n"
    ))
    yield c
    c.stop()


@pytest.fixture(scope="module")
def pyiceberg(server):
    return RestCatalog("prod", uri=server[0], warehouse=server[1], credential=CREDENTIAL)


def rows(table) -> list[tuple]:
    return sorted((r["id"], r["name"]) for r in table.scan().to_arrow().to_pylist())


def test_rows_of_all_statements_are_equal(cluster, pyiceberg):
    cluster.sql("""
        CREATE SCHEMA prod.demo;
        CREATE TABLE prod.demo.t (id BIGINT, s STRUCT(a INTEGER, b VARCHAR), name VARCHAR);
        INSERT INTO prod.demo.t SELECT i, {'a': i, 'b': 'b'}, 'n' || i FROM range(0, 20) r(i);
        CREATE TABLE prod.demo.u AS SELECT id, name, s FROM prod.demo.t;
        UPDATE prod.demo.u SET name = 'even' WHERE id % 2 = 0;
        DELETE FROM prod.demo.u WHERE id >= 10;
        MERGE INTO prod.demo.u AS u USING prod.demo.t AS t ON u.id = t.id
          WHEN MATCHED AND u.id < 2 THEN DELETE WHEN NOT MATCHED AND t.id = 15 THEN INSERT (id, name) VALUES (t.id, t.name);
    """)
    t = pyiceberg.load_table(("demo", "t"))
    assert rows(t) == [(i, f"n{i}") for i in range(20)]
    assert sorted(r["s"]["a"] for r in t.scan().to_arrow().to_pylist()) == list(range(20)), "field ids are the server's"
    want = [(i, "even" if i % 2 == 0 else f"n{i}") for i in range(2, 10)] + [(15, "n15")]
    assert rows(pyiceberg.load_table(("demo", "u"))) == want


def test_both_append_and_nothing_is_lost(cluster, pyiceberg):
    cluster.sql("CREATE SCHEMA prod.both; CREATE TABLE prod.both.t (id BIGINT, name VARCHAR)")
    errors = []

    def ours(n):
        try:
            cluster.sql(f"INSERT INTO prod.both.t SELECT i, 'signet' FROM range({n * 10}, {n * 10 + 10}) r(i)")
        except Exception as e:
            errors.append(e)

    def theirs():
        for n in range(100, 104):
            data = pa.table({"id": pa.array(range(n * 10, n * 10 + 10), pa.int64()), "name": pa.array(["pyiceberg"] * 10)})
            for _ in range(50):
                try:
                    pyiceberg.load_table(("both", "t")).append(data)
                    break
                except Exception as e:
                    if "CommitFailed" not in type(e).__name__:
                        errors.append(e)
                        return
            else:
                errors.append(RuntimeError("PyIceberg never got through"))

    threads = [threading.Thread(target=ours, args=(n,)) for n in range(8)] + [threading.Thread(target=theirs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    want = [(i, "signet") for i in range(80)] + [(i, "pyiceberg") for i in range(1000, 1040)]
    assert rows(pyiceberg.load_table(("both", "t"))) == want
    got = cluster.sql("SELECT id, name FROM prod.both.t ORDER BY id")
    assert [(r["id"], r["name"]) for r in got] == want
