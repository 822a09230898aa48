"""delta-rs and Spark read the Delta tables that Signet has written: equal rows, and for each column filters on edge values that find them, which they look for
in those files alone whose statistics and partition values may match.

INTEROP_WRITER=delta-rs has delta-rs write them instead: what fails then too is the reader's own defect.
"""
import collections
import functools
import json
import os
import shutil

import pytest
from deltalake import DeltaTable

import delta
import matrix
import test_spark

OURS = os.environ.get("INTEROP_WRITER") != "delta-rs"
TABLES = [t for t in delta.TABLES if OURS or t.name not in delta.DELTA_RS_CANNOT_WRITE]
pytestmark = pytest.mark.skipif(os.environ.get("INTEROP_WRITER") == "pyiceberg", reason="the writer is PyIceberg")


def spark_table(spark, path):
    return spark.read.format("delta").load(str(path))


def spark_rows(spark, path, table) -> list[dict]:
    return matrix.canonical(test_spark.read(spark_table(spark, path), table))


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_delta_rs_reads_equal_rows(deltas, table):
    delta.check_log(deltas.path(table.name))
    assert matrix.canonical(delta.delta_rs(deltas.path(table.name))) == deltas.want(table)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_spark_reads_equal_rows(spark, deltas, table):
    assert spark_rows(spark, deltas.path(table.name), table) == deltas.want(table)


def wrong(deltas, table, ask) -> list:
    out = []
    for f in delta.filters(table):
        c = matrix.column(table, f.column)
        try:
            got = sorted(ask(f, c))
        except Exception as e:  # a filter that fails counts as wrong
            got = " ".join(str(e).split())[:300]
        want = matrix.expected(delta.stored(table, deltas.rows[table.name]), f)
        if got != want:
            out.append((f, len(want), got if isinstance(got, str) else len(got)))
    return out


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_delta_rs_filters_find_their_rows(deltas, table):
    path = deltas.path(table.name)
    assert not wrong(deltas, table, lambda f, c: [r["id"] for r in delta.delta_rs(path, f"SELECT id FROM t WHERE {delta.where(f, delta.rs_literal(f.value, c))}")])


@pytest.mark.parametrize("table", [pytest.param(t, id=t.name, marks=[] if t.name in ("by_text", "by_two") else [pytest.mark.nightly]) for t in TABLES])
def test_spark_filters_find_their_rows(spark, deltas, table):
    df, asked = spark_table(spark, deltas.path(table.name)), delta.filters(table)
    got = collections.defaultdict(list)
    for start in range(0, len(asked), 12):  # one query for several, each with a scan of its own
        parts = [
            df.where(test_spark.where(f, matrix.column(table, f.column))).selectExpr(f"{start + n} AS n", "id") for n, f in enumerate(asked[start : start + 12])
        ]
        for r in functools.reduce(lambda a, b: a.union(b), parts).collect():
            got[r[0]].append(r[1])
    data = delta.stored(table, deltas.rows[table.name])
    assert not [(f, len(got[n])) for n, f in enumerate(asked) if sorted(got[n]) != matrix.expected(data, f)]


def test_signet_filters_find_their_rows(deltas):
    if not OURS:
        pytest.skip("the writer is delta-rs")
    for table in delta.TABLES[:4]:
        name = f"{delta.CATALOG}.matrix.{table.name}"
        data = delta.stored(table, deltas.rows[table.name])
        asked = [f for f in delta.filters(table) if f.op == "null" or f.column in ("id", "c_int", "c_string", "p")]
        script = [f"SELECT count(*) AS n FROM {name} WHERE " + delta.where(f, f.value if isinstance(f.value, int) else "'" + str(f.value).replace("'", "''") + "'") for f in asked]
        got = [r["n"] for r in deltas.cluster.sql(";\n".join(script))]
        assert got == [len(matrix.expected(data, f)) for f in asked], table.name


@pytest.mark.skipif(not OURS, reason="the writer is delta-rs")
def test_bounds_leave_files_out(deltas):
    """Statistics are there, of the right columns, in the form that the protocol has."""
    table = deltas.path("plain")
    adds = [a["add"] for actions in delta.commits(table).values() for a in actions if "add" in a]
    for add in adds:
        stats = json.loads(add["stats"])
        assert stats["numRecords"] == delta.ROWS // 3
        assert {"id", "c_int", "c_date", "c_ts", "c_tstz", "c_dec38", "c_string"} <= set(stats["minValues"]), stats
        assert "c_float_nan" not in stats["maxValues"], "NaN is greater than everything"
        assert len(stats["maxValues"]["c_long_text"]) <= 64
    assert sorted(json.loads(a["stats"])["minValues"]["id"] for a in adds) == [0, 40, 80]
    name = f"{delta.CATALOG}.matrix.floats"
    deltas.cluster.sql(f"CREATE TABLE {name} (a DOUBLE, b REAL); INSERT INTO {name} VALUES (-1.5, 2), (2.5, 'nan'::REAL)")
    (add,) = [a["add"] for actions in delta.commits(deltas.path("floats")).values() for a in actions if "add" in a]
    stats = json.loads(add["stats"])
    assert (stats["minValues"], stats["maxValues"]) == ({"a": -1.5}, {"a": 2.5}), "without a NaN they have bounds"


@pytest.mark.skipif(not OURS, reason="the writer is delta-rs")
def test_checkpoint_without_its_json(spark, deltas, tmp_path):
    """The table says a checkpoint every third commit; then nobody needs the commits before it."""
    table = next(t for t in delta.TABLES if t.name == "options")
    copied = tmp_path / "options"
    shutil.copytree(deltas.path("options"), copied)
    points = sorted((copied / "_delta_log").glob("*.checkpoint.parquet"))
    assert points, "no checkpoint"
    version = int(points[-1].name.split(".")[0])
    for n in range(version):  # the last one stays, as with every clean-up of a log: Spark wants it
        (copied / "_delta_log" / f"{n:020}.json").unlink()
    assert matrix.canonical(delta.delta_rs(copied)) == deltas.want(table)
    assert spark_rows(spark, copied, table) == deltas.want(table)


@pytest.mark.skipif(not OURS, reason="the writer is delta-rs")
def test_history_is_the_same_to_all(spark, deltas):
    path = deltas.path("by_two")
    rs = DeltaTable(str(path)).history()
    sp = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    ours = deltas.cluster.sql(f"DESCRIBE HISTORY {delta.CATALOG}.matrix.by_two")
    assert [h["version"] for h in rs] == [h.version for h in sp] == [int(h["version"]) for h in ours] == list(range(len(rs)))[::-1]
    assert [h["operation"] for h in rs] == [h.operation for h in sp] == [h["operation"] for h in ours]
    for h, r in zip(sp, rs):
        assert h.engineInfo.startswith("Signet/") and r["engineInfo"] == h.engineInfo
        assert h.operation == "CREATE TABLE" or int(h.operationMetrics["numOutputRows"]) == delta.ROWS // 3 and h.isBlindAppend
