"""The JDBC driver of Arrow Flight SQL, which DBeaver and other tools use: connecting, metadata, queries, parameters, writes, errors."""
import os
import pathlib
import subprocess

import pytest

from cluster import CATALOG

pytestmark = pytest.mark.skipif(os.environ.get("INTEROP_WRITER") == "pyiceberg", reason="the writer is PyIceberg")

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def said(cluster):
    """The lines that the program prints, by their first word."""
    cluster.sql(f"CREATE SCHEMA {CATALOG}.jdbc")
    (jar,) = pathlib.Path(os.environ["INTEROP_JARS"]).glob("flight-sql-jdbc-driver-*.jar")
    # The driver asks for a user where there is one to ask for; without auth.tokens the server takes every name.
    args = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", jar, HERE / "FlightJdbc.java", cluster.flight, "useEncryption", "false", "user", "anyone", "password", "any"]
    r = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stdout + r.stderr[-3000:]
    out = {}
    for line in r.stdout.splitlines():
        what, *rest = line.split("|")
        out.setdefault(what, []).append(rest)
    return out


def test_metadata(said):
    assert said["product"] == [["Signet", '"', "false", "true"]]
    assert [CATALOG] in said["catalog"]
    assert said["schema"] == [[CATALOG, "jdbc"]]
    assert said["table"] == [["jdbc", "t", "TABLE"]]
    assert said["column"] == [
        ["id", "BIGINT", "-5", "0", "NO"], ["d", "DECIMAL(9,2)", "3", "2", "YES"], ["s", "VARCHAR", "12", "null", "YES"], ["ts", "TIMESTAMP", "93", "6", "YES"], ["day", "DATE", "91", "0", "YES"],
    ]
    assert "key" not in said


def test_queries(said):
    assert said["row"] == [["1", "1.25", "a", "2024-02-29 12:00:00.0", "2024-02-29"], ["2", "null", "null", "null", "null"]]
    assert said["large"] == [["300000", str(sum(range(300000)))]]


def test_parameters_and_writes(said, cluster):
    assert said["inserted"] == [["2"]]
    assert said["parameters"] == [["1"]] and said["found"] == [["a"]]
    assert said["batch"] == [["3"]] and said["after"] == [["5", "3", "8.75"]]
    assert len(cluster.pyiceberg().load_table(("jdbc", "t")).snapshots()) == 2  # a batch of parameters is one commit


def test_errors(said):
    assert "does not exist" in said["error"][0][0]
    assert said["rollback"] == [["done"]]  # the driver's own doing, which docs/flight-sql.md warns of
    assert said["still here"] == [[]]
