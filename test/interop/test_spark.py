"""Spark 4.0 with the Iceberg 1.11 runtime reads the matrix through a JDBC catalog over the same SQLite file, and appends to it."""
import datetime as dt
import decimal
import os
import uuid

import pytest

import matrix
from cluster import CATALOG
from conftest import SCHEMA

OURS = os.environ.get("INTEROP_WRITER") != "pyiceberg"
TABLES = [t for t in matrix.TABLES if t.spark and t.name not in matrix.SPARK_CANNOT_READ]


def name(table) -> str:
    return f"{CATALOG}.{SCHEMA}.{table.name}"


def plain(v, c=None):
    """A Spark value as the truth has it."""
    if v is None:
        return None
    if hasattr(v, "asDict"):
        return {k: plain(x) for k, x in v.asDict().items()}
    if isinstance(v, dict):
        return [[plain(k), plain(x)] for k, x in v.items()]
    if isinstance(v, list):
        return [plain(x) for x in v]
    if c is not None and c.name == "c_uuid":
        return uuid.UUID(v)
    if c is not None and c.name == "c_tstz":
        return dt.datetime.fromisoformat(v).replace(tzinfo=dt.timezone.utc)  # the session is in UTC
    return v


def read(df, table) -> list[dict]:
    types = {c.name: c for c in table.columns}
    if "c_tstz" in types:  # PySpark cannot carry instants of the year 1 to Python
        df = df.withColumn("c_tstz", df.c_tstz.cast("string"))
    return [{k: plain(v, types.get(k)) for k, v in r.asDict().items()} for r in df.collect()]


def literal(f: matrix.Filter, c: matrix.Type) -> str:
    v = f.value
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, dt.datetime):
        text = v.replace(tzinfo=None).isoformat(" ", "microseconds")
        return f"TIMESTAMP_LTZ '{text}'" if v.tzinfo else f"TIMESTAMP_NTZ '{text}'"
    if isinstance(v, dt.date):
        return f"DATE '{v.isoformat()}'"
    if isinstance(v, decimal.Decimal):
        return f"CAST('{v:f}' AS {c.sql})"
    if isinstance(v, float):
        return f"CAST('{v!r}' AS {'FLOAT' if c.sql == 'REAL' else 'DOUBLE'})"
    if isinstance(v, bytes):
        return f"X'{v.hex()}'"
    if isinstance(v, uuid.UUID):
        return f"'{v}'"
    if isinstance(v, str):
        return "'" + v.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"CAST({v} AS {'BIGINT' if c.sql == 'BIGINT' else 'INT'})" if v > -(2**63) else "(-9223372036854775807 - 1)"


def where(f: matrix.Filter, c: matrix.Type) -> str:
    if f.op == "null":
        return f"{f.column} IS NULL"
    return f"{f.column} {dict(eq='=', ge='>=', lt='<')[f.op]} {literal(f, c)}"


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_rows_are_equal(spark, filled, table):
    if table.name in filled.unwritable:
        pytest.skip("PyIceberg cannot write this table")
    want = matrix.canonical(filled.rows[table.name])
    assert matrix.canonical(read(spark.table(name(table)), table)) == want


def test_metadata_file_alone(spark, filled):
    """Without the catalog: the metadata file is all that a reader is given."""
    for n in ("plain", "by_month_all", "multi_1"):
        table = next(t for t in TABLES if t.name == n)
        location = filled.cluster.pyiceberg().load_table((SCHEMA, n)).metadata_location
        df = spark.read.format("iceberg").load(location.removeprefix("file://"))
        assert matrix.canonical(read(df, table)) == matrix.canonical(filled.rows[n]), n


def one_column(t: matrix.Table) -> bool:
    """One type under one transform: PyIceberg's filters of the same tables run in every run."""
    return len(t.columns) <= 2


@pytest.mark.parametrize("table", [pytest.param(t, id=t.name, marks=[pytest.mark.nightly] if one_column(t) else []) for t in TABLES])
def test_filters_find_their_rows(spark, filled, table):
    if table.name in filled.unwritable:
        pytest.skip("PyIceberg cannot write this table")
    data, wrong = filled.rows[table.name], []
    for f in matrix.filters(table):
        if not matrix.spark_can_filter(table, matrix.column(table, f.column), f):
            continue
        cond = where(f, matrix.column(table, f.column))
        try:
            got = sorted(r[0] for r in spark.sql(f"SELECT id FROM {name(table)} WHERE {cond}").collect())
        except Exception as e:  # a filter that fails counts as wrong
            got = " ".join(str(e).split())[:300]
        want = matrix.expected(data, f)
        if got != want:
            wrong.append((cond, len(want), got if isinstance(got, str) else len(got)))
    assert not wrong


def test_aggregates_from_metadata(spark, filled):
    """min, max and count that Spark answers from column bounds alone."""
    table = next(t for t in TABLES if t.name == "plain")
    data = filled.rows["plain"]
    for c in ("c_int", "c_long", "c_date", "c_dec9"):
        values = [r[c] for r in data if r[c] is not None]
        got = spark.sql(f"SELECT min({c}), max({c}), count({c}), count(*) FROM {name(table)}").collect()[0]
        assert tuple(got) == (min(values), max(values), len(values), len(data)), c


@pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")
def test_both_append(spark, filled):
    """Spark appends to every table, Signet reads and appends, Spark reads all of it."""
    script = []
    for table in TABLES:
        source = filled.rows[table.name][:20]
        first = filled.next_id[table.name]
        filled.next_id[table.name] += len(source)
        ids = [r["id"] for r in source]
        columns = ", ".join(c.name for c in table.columns)
        # Its own rows again under new ids: what Spark reads it can write.
        cases = " ".join(f"WHEN {i} THEN {first + n}" for n, i in enumerate(ids))
        spark.sql(f"INSERT INTO {name(table)} SELECT CAST(CASE id {cases} END AS BIGINT), {columns} FROM {name(table)} WHERE id IN ({', '.join(map(str, ids))})")
        filled.rows[table.name] += [{**r, "id": first + n} for n, r in enumerate(source)]
        count = filled.cluster.sql(f"SELECT count(*) AS n, sum(id) AS s FROM {name(table)}")[0]
        assert count == {"n": len(filled.rows[table.name]), "s": sum(r["id"] for r in filled.rows[table.name])}, table.name
        script.append(filled.insert(table, 30))
    filled.cluster.sql("\n".join(script))
    wrong = [t.name for t in TABLES if matrix.canonical(read(spark.table(name(t)), t)) != matrix.canonical(filled.rows[t.name])]
    assert not wrong
