"""Partition columns of any name: what other engines find in the tables."""
import pytest

from cluster import CATALOG

SCHEMA = "names"
ODD = ["a key", "😎", "a.b", "a/b", "9x", "data#1", 'q"q', "größe", "it's", "%20"]
VALUES = ["11/12/13", "a=b&c%20 d", "", None, "null"]


@pytest.fixture(scope="module")
def space(cluster):
    cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")
    return cluster


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(v) -> str:
    return "NULL" if v is None else "'" + v + "'"


def odd_table(space, name: str) -> list[dict]:
    columns = ", ".join(quoted(n) + " VARCHAR" for n in ODD)
    rows = ", ".join(f"({i}, {', '.join([literal(v)] * len(ODD))})" for i, v in enumerate(VALUES))
    space.sql(f"CREATE TABLE {CATALOG}.{SCHEMA}.{name} (id BIGINT, {columns}) PARTITIONED BY ({', '.join(map(quoted, ODD))}); INSERT INTO {CATALOG}.{SCHEMA}.{name} VALUES {rows}")
    return [{"id": i} | {n: v for n in ODD} for i, v in enumerate(VALUES)]


def test_pyiceberg_reads_odd_partition_columns(space):
    want = odd_table(space, "py")
    table = space.pyiceberg().load_table((SCHEMA, "py"))
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda r: r["id"]) == want
    partitions = [t.file.partition for t in table.scan().plan_files()]
    assert sorted(str(p[0]) for p in partitions) == sorted(map(str, VALUES))
    assert all(p[k] == p[0] for p in partitions for k in range(len(ODD)))


def test_spark_reads_and_continues_odd_partition_columns(spark, space):
    want = odd_table(space, "sp")
    t = f"{CATALOG}.{SCHEMA}.sp"
    read = lambda: sorted((r.asDict() for r in spark.table(t).collect()), key=lambda r: r["id"])
    assert read() == want
    for v, n in [("11/12/13", 1), ("", 1), ("null", 1)]:
        assert spark.sql(f"SELECT * FROM {t} WHERE `a key` = '{v}' AND `9x` = '{v}'").count() == n
    spark.sql(f"DELETE FROM {t} WHERE `data#1` IS NULL")
    want = [r for r in want if r["id"] != 3]
    assert read() == want
    assert sorted(r["id"] for r in space.sql(f"SELECT id FROM {t}")) == [r["id"] for r in want]
