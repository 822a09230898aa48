"""PyIceberg and Spark read files that Signet has added where they are, files whose row groups it has copied, and tables of format version 1 that it appends to."""
import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster import CATALOG
from test_spark import OURS

SCHEMA = "added"
pytestmark = pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")
ROWS = 30_000


def rows(first: int, count: int, month: int) -> pa.Table:
    return pa.table({
        "id": pa.array(range(first, first + count), pa.int64()),
        "name": pa.array([None if i % 7 == 0 else f"name {i}" for i in range(first, first + count)]),
        "ts": pa.array([datetime.datetime(2024, month, 1 + i % 28) for i in range(count)], pa.timestamp("us")),
        "price": pa.array([i * 0.25 for i in range(count)], pa.float64()),
        "tags": pa.array([[f"t{i % 3}", None] if i % 2 else None for i in range(count)], pa.list_(pa.string())),
        "s": pa.array([{"a": i, "b": f"b{i}"} for i in range(count)], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    })


COLUMNS = "id BIGINT NOT NULL, name VARCHAR, ts TIMESTAMP, price DOUBLE, tags VARCHAR[], s STRUCT(a BIGINT, b VARCHAR)"


@pytest.fixture(scope="module")
def landing(cluster):
    cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")
    (cluster.landing / "raw").mkdir()
    for n in range(3):
        pq.write_table(rows(n * ROWS, ROWS, n + 1), cluster.landing / "raw" / f"{n}.parquet", row_group_size=20_000, compression="zstd")
    for day in ["2024-01-01", "2024-01-02"]:
        d = cluster.landing / "hive" / f"day={day}"
        d.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), d / "x.parquet")
    return cluster.landing


def loaded(cluster, name):
    return cluster.pyiceberg().load_table((SCHEMA, name))


def same_as_files(got: pa.Table, landing):
    want = pq.read_table(landing / "raw").sort_by("id")
    got = got.sort_by("id")
    assert got.num_rows == want.num_rows
    for c in want.column_names:
        assert got.column(c).to_pylist() == want.column(c).to_pylist(), c


def check(spark, cluster, landing, name):
    """Rows, filters on values and on partitions, by every reader."""
    t = loaded(cluster, name)
    same_as_files(t.scan().to_arrow(), landing)
    assert t.scan("id == 31234").to_arrow().num_rows == 1
    assert t.scan("ts >= '2024-03-01T00:00:00'").to_arrow().num_rows == ROWS
    assert t.scan("name is null").to_arrow().num_rows == len([i for i in range(3 * ROWS) if i % 7 == 0])
    full = f"{CATALOG}.{SCHEMA}.{name}"
    assert spark.sql(f"SELECT count(*), sum(id), count(name), sum(price), sum(s.a), sum(size(tags)) FROM {full} WHERE tags IS NOT NULL OR id >= 0").collect() == \
        spark.read.parquet(str(landing / "raw")).selectExpr("count(*)", "sum(id)", "count(name)", "sum(price)", "sum(s.a)", "sum(size(tags))").collect()
    assert spark.sql(f"SELECT count(*) FROM {full} WHERE id = 31234").collect()[0][0] == 1
    assert spark.sql(f"SELECT count(*) FROM {full} WHERE ts >= TIMESTAMP '2024-03-01 00:00:00'").collect()[0][0] == ROWS
    assert spark.sql(f"SELECT count(*) FROM {full} WHERE name = 'name 45001'").collect()[0][0] == 1


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (month(ts))"])
@pytest.mark.parametrize("copy", [False, True])
def test_added_files(spark, cluster, landing, version, partition, copy):
    name = f"t{version}_{len(partition)}_{int(copy)}"
    full = f"{CATALOG}.{SCHEMA}.{name}"
    cluster.sql(f"CREATE TABLE {full} ({COLUMNS}) {partition} WITH ('format-version' = '{version}');"
                f"ALTER TABLE {full} ADD FILES FROM '{landing}/raw/*.parquet' WITH (copy = {str(copy).lower()})")
    check(spark, cluster, landing, name)
    t = loaded(cluster, name)
    if not copy:
        assert sorted(f.file.file_path for f in t.scan().plan_files()) == [f"file://{landing}/raw/{n}.parquet" for n in range(3)]
    if partition:
        assert len(list(t.scan("ts < '2024-02-01T00:00:00'").plan_files())) == len(list(t.scan().plan_files())) // 3
        assert spark.sql(f"SELECT count(*) FROM {full}.partitions").collect()[0][0] == 3
    if version == 3:
        assert spark.sql(f"SELECT count(DISTINCT _row_id), min(_row_id), max(_row_id) FROM {full}").collect()[0] == (3 * ROWS, 0, 3 * ROWS - 1)
    spark.sql(f"INSERT INTO {full} SELECT -1, 'more', TIMESTAMP '2024-01-01 00:00:00', 0.5, NULL, NULL")
    cluster.sql(f"INSERT INTO {full} (id) VALUES (-2)")
    assert spark.sql(f"SELECT count(*), min(id) FROM {full}").collect()[0] == (3 * ROWS + 2, -2)
    assert loaded(cluster, name).scan().to_arrow().num_rows == 3 * ROWS + 2
    assert cluster.sql(f"SELECT count(*) AS n FROM {full}")[0]["n"] == 3 * ROWS + 2


def test_added_hive_directories(spark, cluster, landing):
    full = f"{CATALOG}.{SCHEMA}.hive"
    cluster.sql(f"CREATE TABLE {full} (id BIGINT, day DATE) PARTITIONED BY (day); ALTER TABLE {full} ADD FILES FROM '{landing}/hive/*/*.parquet'")
    want = [(datetime.date(2024, 1, d), 10) for d in (1, 2)]
    assert [tuple(r) for r in spark.sql(f"SELECT day, count(*) FROM {full} GROUP BY day ORDER BY day").collect()] == want
    assert spark.sql(f"SELECT count(*) FROM {full} WHERE day = DATE '2024-01-02'").collect()[0][0] == 10
    assert loaded(cluster, "hive").scan("day == '2024-01-02'").to_arrow().column("day").to_pylist() == [datetime.date(2024, 1, 2)] * 10


@pytest.mark.parametrize("version", [2, 3])
def test_compaction(spark, cluster, landing, version):
    name = f"compacted{version}"
    full = f"{CATALOG}.{SCHEMA}.{name}"
    cluster.sql(f"CREATE TABLE {full} ({COLUMNS}) WITH ('format-version' = '{version}')")
    for n in range(3):
        cluster.sql(f"INSERT INTO {full} SELECT * FROM '{landing}/raw/{n}.parquet'")
    before = loaded(cluster, name).current_snapshot().sequence_number
    cluster.sql(f"CALL {CATALOG}.system.rewrite_data_files(table => '{SCHEMA}.{name}', options => MAP('rewrite-all', 'true'))")
    t = loaded(cluster, name)
    assert t.current_snapshot().summary.operation.value == "replace"
    assert len(list(t.scan().plan_files())) == 1
    assert spark.sql(f"SELECT min(sequence_number) FROM {full}.entries WHERE status = 1").collect()[0][0] == before
    check(spark, cluster, landing, name)
    if version == 3:
        assert spark.sql(f"SELECT count(DISTINCT _row_id), min(_last_updated_sequence_number), max(_last_updated_sequence_number) FROM {full}").collect()[0] == (3 * ROWS, 1, 3)
