"""A catalog in AWS Glue, with moto as Glue and as S3: Signet and PyIceberg write to the same tables, and read the same rows.

moto's Glue takes UpdateTable whatever VersionId it names, so writers take turns here; that none is lost when they do not is shown by catalog/glue's own tests.
"""
import os
import pathlib
import re
import subprocess
import sys
import threading

import boto3
import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "interop"))
from cluster import BIN, Cluster  # noqa: E402

KEY, SECRET, REGION = "canary-key", "canary-secret", "us-east-1"


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    """The server's address. It says which port it took."""
    log = tmp_path_factory.mktemp("moto") / "moto.log"
    with open(log, "w") as out:
        p = subprocess.Popen([pathlib.Path(sys.executable).parent / "moto_server", "-H", "127.0.0.1", "-p", "0"], stderr=subprocess.PIPE, stdout=out, text=True)
    seen = []
    for line in p.stderr:
        seen.append(line)
        if m := re.search(r"Running on (http://\S+)", line):
            break
    else:
        raise RuntimeError("moto did not start: " + "".join(seen))
    threading.Thread(target=p.stderr.read, daemon=True).start()
    url = m.group(1)
    boto3.client("s3", endpoint_url=url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET).create_bucket(Bucket="lake")
    yield url
    p.kill()
    p.wait()


@pytest.fixture(scope="module")
def cluster(moto, tmp_path_factory):
    d = tmp_path_factory.mktemp("cluster")
    for name, text in (("key", KEY), ("secret", SECRET)):
        (d / name).write_text(text)
        (d / name).chmod(0o600)
    keys = ", ".join(f"{kind}.access-key-id: {{file: {d}/key}}, {kind}.secret-access-key: {{file: {d}/secret}}" for kind in ("glue", "s3"))
    c = Cluster(d / "c", catalogs=(
        f"  aws:\n    type: glue\n    warehouse: s3://lake/wh\n    properties: {{glue.endpoint: '{moto}', s3.endpoint: '{moto}', glue.region: {REGION}, s3.region: {REGION}}}\n"
        f"    secret: {{{keys}}}\n"
    ))
    yield c
    c.stop()


@pytest.fixture(scope="module")
def pyiceberg(moto):
    return GlueCatalog("aws", **{
        "glue.endpoint": moto, "glue.region": REGION, "glue.access-key-id": KEY, "glue.secret-access-key": SECRET,
        "s3.endpoint": moto, "s3.region": REGION, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "warehouse": "s3://lake/wh",
    })


def rows(table) -> list[tuple]:
    return sorted((r["id"], r["name"]) for r in table.scan().to_arrow().to_pylist())


def test_rows_of_all_statements_are_equal(cluster, pyiceberg):
    cluster.sql("""
        CREATE SCHEMA aws.demo;
        CREATE TABLE aws.demo.t (id BIGINT, s STRUCT(a INTEGER, b VARCHAR), name VARCHAR);
        INSERT INTO aws.demo.t SELECT i, {'a': i, 'b': 'b'}, 'n' || i FROM range(0, 20) r(i);
        CREATE TABLE aws.demo.u AS SELECT id, name, s FROM aws.demo.t;
        UPDATE aws.demo.u SET name = 'even' WHERE id % 2 = 0;
        DELETE FROM aws.demo.u WHERE id >= 10;
        ALTER TABLE aws.demo.u ADD COLUMN more DOUBLE;
    """)
    assert rows(pyiceberg.load_table("demo.t")) == [(i, f"n{i}") for i in range(20)]
    assert rows(pyiceberg.load_table("demo.u")) == [(i, "even" if i % 2 == 0 else f"n{i}") for i in range(10)]
    assert sorted(pyiceberg.list_tables("demo")) == [("demo", "t"), ("demo", "u")]
    assert [f.name for f in pyiceberg.load_table("demo.u").schema().fields] == ["id", "name", "s", "more"]
    cluster.sql("DROP TABLE aws.demo.u")
    assert pyiceberg.list_tables("demo") == [("demo", "t")]


def test_both_append_in_turns(cluster, pyiceberg):
    cluster.sql("CREATE SCHEMA aws.both; CREATE TABLE aws.both.t (id BIGINT, name VARCHAR)")
    want = []
    for n in range(3):
        cluster.sql(f"INSERT INTO aws.both.t SELECT i, 'signet' FROM range({n * 10}, {n * 10 + 10}) r(i)")
        pyiceberg.load_table("both.t").append(pa.table({"id": pa.array(range(1000 + n * 10, 1010 + n * 10), pa.int64()), "name": pa.array(["pyiceberg"] * 10)}))
        want += [(i, "signet") for i in range(n * 10, n * 10 + 10)] + [(i, "pyiceberg") for i in range(1000 + n * 10, 1010 + n * 10)]
    assert rows(pyiceberg.load_table("both.t")) == sorted(want)
    assert [(r["id"], r["name"]) for r in cluster.sql("SELECT id, name FROM aws.both.t ORDER BY id")] == sorted(want)


def test_signet_writes_to_a_table_of_pyiceberg(cluster, pyiceberg):
    pyiceberg.create_namespace("theirs")
    data = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
    pyiceberg.create_table("theirs.t", schema=data.schema).append(data)
    cluster.sql("INSERT INTO aws.theirs.t VALUES (3, 'c'); DELETE FROM aws.theirs.t WHERE id = 1")
    assert rows(pyiceberg.load_table("theirs.t")) == [(2, "b"), (3, "c")]


def test_names_in_upper_case_are_refused(cluster):
    with pytest.raises(Exception, match="lower case"):
        cluster.sql('CREATE SCHEMA aws."Demo"')


def test_check_finds_nothing_wrong(cluster):
    out = subprocess.run([BIN / "signet", "check", "--config", cluster.config, "--catalog", "aws", "--output", "json"], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stdout + out.stderr
    assert "list namespaces" in out.stdout and KEY not in out.stdout + out.stderr
